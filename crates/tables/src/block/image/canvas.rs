//! A picture to draw on. Main type: [`Canvas`]; places are in pixels from the top left corner.

use super::font;

/// Red, green, blue.
pub(super) type Colour = [u8; 3];

/// A picture.
pub(super) struct Canvas {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) pixels: Vec<u8>,
}

impl Canvas {
    pub(super) fn new(width: u32, height: u32) -> Self {
        Canvas { width, height, pixels: vec![0; (3 * width * height) as usize] }
    }

    /// Sets a pixel; pixels outside the picture are ignored.
    pub(super) fn set(&mut self, x: i32, y: i32, colour: Colour) {
        if let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y))
            && x < self.width
            && y < self.height
        {
            let at = (3 * (y * self.width + x)) as usize;
            self.pixels[at..at + 3].copy_from_slice(&colour);
        }
    }

    /// Fills a rectangle.
    pub(super) fn rectangle(&mut self, x: i32, y: i32, width: i32, height: i32, colour: Colour) {
        for row in y..y + height {
            (x..x + width).for_each(|column| self.set(column, row, colour));
        }
    }

    /// Fills a shape between two heights, from a left to a right edge that depend on the height, as shares of it.
    pub(super) fn slope(&mut self, top: (i32, i32, i32), bottom: (i32, i32, i32), colour: Colour) {
        let ((top_y, top_left, top_right), (bottom_y, bottom_left, bottom_right)) = (top, bottom);
        for y in top_y..bottom_y {
            let share = |from: i32, to: i32| from + (to - from) * (y - top_y) / (bottom_y - top_y).max(1);
            for x in share(top_left, bottom_left)..share(top_right, bottom_right) {
                self.set(x, y, colour);
            }
        }
    }

    /// Fills a circle.
    pub(super) fn circle(&mut self, x: i32, y: i32, radius: i32, colour: Colour) {
        for dy in -radius..=radius {
            for dx in -radius..=radius {
                if dx * dx + dy * dy <= radius * radius {
                    self.set(x + dx, y + dy, colour);
                }
            }
        }
    }

    /// Draws a text; each dot of a letter is a square of `dot` pixels.
    pub(super) fn text(&mut self, x: i32, y: i32, dot: i32, text: &str, colour: Colour) {
        let (columns, rows) = font::SIZE;
        for (place, letter) in text.chars().enumerate() {
            let left = x + place as i32 * dot * (columns as i32 + 1);
            for row in 0..rows {
                for column in 0..columns {
                    if font::glyph(letter, column, row) {
                        self.rectangle(left + column as i32 * dot, y + row as i32 * dot, dot, dot, colour);
                    }
                }
            }
        }
    }

    /// Returns the width of a text in pixels.
    pub(super) fn text_width(text: &str, dot: i32) -> i32 {
        (text.chars().count() as i32 * (font::SIZE.0 as i32 + 1) - 1) * dot
    }
}
