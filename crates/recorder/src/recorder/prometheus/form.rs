//! The parameters of a request, from its address and its body. Main type: [`Form`].

use super::refusal::Refusal;
use crate::recorder::intake::request::parameter;

/// Parameters in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads the parameters of an address and of a body, both percent-encoded.
    ///
    /// # Errors
    /// Which parameter cannot be read.
    pub(super) fn read(query: &str, body: &str) -> Result<Self, Refusal> {
        let mut form = Form::default();
        for pair in query.split('&').chain(body.split('&')).filter(|pair| !pair.is_empty()) {
            let (name, _) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| parameter(&format!("x={text}"), "x");
            let value = if pair.contains('=') { parameter(pair, name) } else { Some(String::new()) };
            let (Some(name), Some(value)) = (decoded(name), value) else {
                return Err(Refusal::Bad(format!("parameter {name:?} cannot be read")));
            };
            form.0.push((name, value));
        }
        Ok(form)
    }

    /// Returns a parameter, if it is there and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).find(|value| !value.is_empty())
    }

    /// Returns a parameter that must be there.
    ///
    /// # Errors
    /// That it is missing.
    pub(super) fn need(&self, name: &str) -> Result<&str, Refusal> {
        self.get(name).ok_or_else(|| Refusal::Bad(format!("invalid parameter \"{name}\": it is missing")))
    }

    /// Returns all values of a parameter.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_from_both_places() {
        let form = Form::read("query=a%2Bb+c&match%5B%5D=x", "match[]=y%26z&end=&flag").unwrap();
        assert_eq!(form.get("query"), Some("a+b c"));
        assert_eq!(form.all("match[]").collect::<Vec<_>>(), ["x", "y&z"]);
        assert_eq!((form.get("end"), form.get("flag")), (None, None));
        assert!(matches!(form.need("start"), Err(Refusal::Bad(says)) if says.contains("\"start\"")));
        assert!(matches!(Form::read("a=%zz", ""), Err(Refusal::Bad(says)) if says.contains("\"a\"")));
    }
}
