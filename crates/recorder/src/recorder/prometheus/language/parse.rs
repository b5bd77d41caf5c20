//! Reads a question. Main functions: [`parse`] and [`selector`].

use super::pattern::Pattern;
use super::tokens::{Placed, Token, tokens};
use super::{Expression, Fold, Function, Matcher, NAME, Selector, Test};

/// The most aggregations within each other.
const DEPTH_MAX: usize = 8;
/// The longest range of time, in nanoseconds: 10 years.
pub(in crate::recorder::prometheus) const RANGE_NS_MAX: i64 = 10 * 365 * 86_400 * 1_000_000_000;
/// What is said of everything else.
const SUPPORTED: &str = "supported are metric{label=\"x\", label=~\"a|b\"}, avg_over_time, min_over_time, max_over_time, sum_over_time, \
                         count_over_time and rate of metric{...}[5m], and avg, min, max, sum and count by (label) (...) around them";

/// Reads a question.
///
/// # Errors
/// A sentence that begins with the place.
pub(in crate::recorder::prometheus) fn parse(text: &str) -> Result<Expression, String> {
    read(text, |parser| parser.expression(0))
}

/// Reads a selector, as `match[]` has it.
///
/// # Errors
/// A sentence that begins with the place.
pub(in crate::recorder::prometheus) fn selector(text: &str) -> Result<Selector, String> {
    read(text, |parser| parser.selector())
}

fn read<T>(text: &str, part: impl FnOnce(&mut Parser<'_>) -> Outcome<T>) -> Result<T, String> {
    let shown = |(place, says): (usize, String)| format!("1:{place}: parse error: {says}");
    let tokens = tokens(text).map_err(shown)?;
    let end = text.chars().count() + 1;
    let mut parser = Parser { tokens: &tokens, at: 0, end };
    let read = part(&mut parser).map_err(shown)?;
    match parser.peek() {
        None => Ok(read),
        Some(_) => Err(shown(parser.unexpected())),
    }
}

type Outcome<T> = Result<T, (usize, String)>;

struct Parser<'t> {
    tokens: &'t [Placed],
    at: usize,
    /// The place behind the last character.
    end: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    fn place(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |placed| placed.place)
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(own)) if *own == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let is = self.is(sign);
        self.at += usize::from(is);
        is
    }

    fn need(&mut self, sign: &str) -> Outcome<()> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Returns that the next word is not expected, and what is supported.
    fn unexpected(&self) -> (usize, String) {
        let what = match self.peek() {
            None => "unexpected end of input".to_owned(),
            Some(Token::Word(word)) => format!("unexpected {word:?}"),
            Some(Token::Text(text)) => format!("unexpected text {text:?}"),
            Some(Token::Number(number)) => format!("unexpected number {number}"),
            Some(Token::Sign(sign)) => format!("unexpected {sign:?}"),
        };
        (self.place(), format!("{what}; {SUPPORTED}"))
    }

    fn expression(&mut self, depth: usize) -> Outcome<Expression> {
        let Some(Token::Word(word)) = self.peek() else {
            return match self.peek() {
                Some(Token::Sign("{")) => self.newest(),
                Some(Token::Number(_)) => self.numbers(),
                _ => Err(self.unexpected()),
            };
        };
        let next = self.tokens.get(self.at + 1).map(|placed| &placed.token);
        let is_call = matches!(next, Some(Token::Sign("(")));
        let is_by = matches!(next, Some(Token::Word(word)) if word == "by");
        let (fold, function) = (Fold::named(word), Function::named(word));
        match (fold, function) {
            (Some(fold), _) if is_call || is_by => {
                if depth >= DEPTH_MAX {
                    return Err((self.place(), format!("more than {DEPTH_MAX} aggregations are within each other")));
                }
                self.at += 1;
                self.group(fold, depth)
            }
            (_, Some(function)) if is_call => {
                self.at += 2;
                self.window(function)
            }
            _ if is_call => Err((self.place(), format!("unknown function {word:?}; {SUPPORTED}"))),
            _ => self.newest(),
        }
    }

    fn newest(&mut self) -> Outcome<Expression> {
        let selector = self.selector()?;
        if self.is("[") {
            let says = format!("a range of time is for a function; {SUPPORTED}");
            return Err((self.place(), says));
        }
        Ok(Expression::Newest(selector))
    }

    fn window(&mut self, function: Function) -> Outcome<Expression> {
        let selector = self.selector()?;
        if !self.is("[") {
            let says = "expected a range of time, as in metric{...}[5m]".to_owned();
            return Err((self.place(), says));
        }
        self.at += 1;
        let place = self.place();
        let Some(Token::Number(written)) = self.peek() else { return Err(self.unexpected()) };
        let range_ns = duration_ns(written).filter(|range_ns| (1_000_000..=RANGE_NS_MAX).contains(range_ns));
        let range_ns = range_ns.ok_or_else(|| (place, format!("{written:?} is not a duration, as in 5m or 1h30m")))?;
        self.at += 1;
        self.need("]")?;
        self.need(")")?;
        Ok(Expression::Window { function, selector, range_ns })
    }

    fn group(&mut self, fold: Fold, depth: usize) -> Outcome<Expression> {
        let mut by = self.by()?;
        self.need("(")?;
        let inner = Box::new(self.expression(depth + 1)?);
        self.need(")")?;
        if by.is_none() {
            by = self.by()?;
        }
        if matches!(*inner, Expression::Number(_)) {
            return Err((self.place(), format!("an aggregation is of series and not of a number; {SUPPORTED}")));
        }
        Ok(Expression::Group { fold, by: by.unwrap_or_default(), inner })
    }

    /// Reads `by (label, ...)`, if it is there.
    fn by(&mut self) -> Outcome<Option<Vec<String>>> {
        if !matches!(self.peek(), Some(Token::Word(word)) if word == "by") {
            return Ok(None);
        }
        self.at += 1;
        self.need("(")?;
        let mut labels = Vec::new();
        while !self.take(")") {
            let Some(Token::Word(label)) = self.peek() else { return Err(self.unexpected()) };
            labels.push(label.clone());
            self.at += 1;
            if !self.take(",") && !self.is(")") {
                return Err(self.unexpected());
            }
        }
        labels.sort();
        labels.dedup();
        Ok(Some(labels))
    }

    fn selector(&mut self) -> Outcome<Selector> {
        let (place, mut matchers) = (self.place(), Vec::new());
        if let Some(Token::Word(name)) = self.peek() {
            matchers.push(Matcher { label: NAME.to_owned(), test: Test::Equal(name.clone()) });
            self.at += 1;
        }
        if self.take("{") {
            while !self.take("}") {
                matchers.push(self.matcher()?);
                if !self.take(",") && !self.is("}") {
                    return Err(self.unexpected());
                }
            }
        } else if matchers.is_empty() {
            return Err(self.unexpected());
        }
        if matchers.is_empty() {
            return Err((place, "a selector needs a metric's name or a condition".to_owned()));
        }
        Ok(Selector { matchers })
    }

    fn matcher(&mut self) -> Outcome<Matcher> {
        let Some(Token::Word(label)) = self.peek() else { return Err(self.unexpected()) };
        let label = label.clone();
        self.at += 1;
        let Some(Token::Sign(sign @ ("=" | "!=" | "=~" | "!~"))) = self.peek() else { return Err(self.unexpected()) };
        let sign = *sign;
        self.at += 1;
        let place = self.place();
        let Some(Token::Text(text)) = self.peek() else { return Err(self.unexpected()) };
        let text = text.clone();
        self.at += 1;
        let pattern = || Pattern::read(&text).map_err(|says| (place, says));
        let test = match sign {
            "=" => Test::Equal(text),
            "!=" => Test::Unequal(text),
            "=~" => Test::Like(pattern()?),
            _ => Test::Unlike(pattern()?),
        };
        Ok(Matcher { label, test })
    }

    /// Reads numbers that are added to or subtracted from each other.
    fn numbers(&mut self) -> Outcome<Expression> {
        let (mut sum, mut sign) = (0.0, 1.0);
        loop {
            let Some(Token::Number(written)) = self.peek() else { return Err(self.unexpected()) };
            let number = written.parse().ok().filter(|number: &f64| number.is_finite());
            let number = number.ok_or_else(|| self.unexpected())?;
            sum += sign * number;
            self.at += 1;
            sign = match self.peek() {
                Some(Token::Sign("+")) => 1.0,
                Some(Token::Sign("-")) => -1.0,
                _ => return Ok(Expression::Number(sum)),
            };
            self.at += 1;
        }
    }
}

/// Returns a duration such as `1h30m` in nanoseconds; each unit may come once, the longest first.
pub(in crate::recorder::prometheus) fn duration_ns(text: &str) -> Option<i64> {
    const UNITS: [(&str, i64); 7] = [
        ("y", 365 * 86_400_000),
        ("w", 7 * 86_400_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
        ("ms", 1),
    ];
    let (mut rest, mut sum_ms, mut from) = (text, 0_i64, 0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let place = UNITS.iter().position(|(name, _)| *name == &rest[..letters]).filter(|place| *place >= from)?;
        from = place + 1;
        sum_ms = sum_ms.checked_add(number.checked_mul(UNITS[place].1)?)?;
        rest = &rest[letters..];
    }
    (!text.is_empty()).then_some(())?;
    sum_ms.checked_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_of_the_supported_kinds_are_read() {
        let is_group = |text: &str| matches!(parse(text).unwrap(), Expression::Group { .. });
        assert!(matches!(parse("cpu_idle").unwrap(), Expression::Newest(_)));
        assert!(matches!(parse("{__name__=~\"cpu_.+\",host!=\"a\"}").unwrap(), Expression::Newest(_)));
        assert!(is_group("sum by (host) (rate(cpu_idle{host=~\"a|b\"}[1h30m]))"));
        assert!(is_group("avg(cpu_idle) by (host, cpu)"));
        assert!(is_group("max(sum by (host,) (cpu_idle))"));
        assert_eq!(parse("1+1").unwrap(), Expression::Number(2.0));
        assert_eq!(parse(" 5 - .5 ").unwrap(), Expression::Number(4.5));
        // A metric may have the name of an aggregation.
        assert!(matches!(parse("sum").unwrap(), Expression::Newest(_)));
        let Expression::Window { function, selector, range_ns } = parse("rate(m{a='x\\n'}[90s])").unwrap() else {
            panic!("it is a window")
        };
        assert_eq!((function, range_ns, selector.fixed("a")), (Function::Rate, 90_000_000_000, Some("x\n")));
    }

    #[test]
    fn everything_else_is_refused_with_its_place() {
        let cases = [
            ("", "1:1: parse error: unexpected end of input; supported are metric{"),
            ("up offset 5m", "1:4: parse error: unexpected \"offset\""),
            ("a + b", "1:3: parse error: unexpected \"+\""),
            ("histogram_quantile(0.9, a)", "1:1: parse error: unknown function \"histogram_quantile\""),
            ("sum without (a) (b)", "1:5: parse error: unexpected \"without\""),
            ("rate(a)", "1:7: parse error: expected a range of time"),
            ("rate(a[5x])", "1:8: parse error: \"5x\" is not a duration"),
            ("rate(a[0s])", "1:8: parse error: \"0s\" is not a duration"),
            ("rate(a[5m:1m])", "parse error: unexpected \":\""),
            ("a[5m]", "1:2: parse error: a range of time is for a function"),
            ("a{b=\"c", "1:5: parse error: unterminated quoted string"),
            ("a{b=~\"[a]\"}", "1:6: parse error: the regular expression \"[a]\" is not supported"),
            ("{}", "1:1: parse error: a selector needs"),
            ("a{b}", "1:4: parse error: unexpected \"}\""),
            ("1 - 1e999", "1:5: parse error: unexpected number 1e999"),
            ("sum(1)", "an aggregation is of series"),
            ("ä", "1:1: parse error: unexpected character"),
            ("a @ 5", "1:3: parse error: unexpected \"@\""),
        ];
        for (text, expected) in cases {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let deep = format!("{}a{}", "sum(".repeat(9), ")".repeat(9));
        assert!(parse(&deep).unwrap_err().contains("more than 8 aggregations"));
    }

    #[test]
    fn durations_have_units_from_the_longest_to_the_shortest() {
        let ms = |text: &str| duration_ns(text).map(|ns| ns / 1_000_000);
        assert_eq!(
            ["5m", "1h30m", "1d", "100ms", "1s5ms"].map(ms),
            [300_000, 5_400_000, 86_400_000, 100, 1_005].map(Some)
        );
        assert_eq!(["", "5", "m", "1m1h", "1m1m", "99999999999999y"].map(ms), [None; 6]);
    }
}
