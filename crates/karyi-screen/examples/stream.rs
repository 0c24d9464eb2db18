//! Streams a Markdown text into the scrollback above a live region.

use std::io;

use karyi_screen::live_region::{LiveRegion, Reflow, Region, Size};
use karyi_screen::markdown::MarkdownStream;
use karyi_screen::styled_line::{Line, Palette};

const TEXT: &str = "# Title\n\nA paragraph with **bold** words.\n\n```sh\nmake test\n```\n";

fn main() -> io::Result<()> {
    let size = Size {
        columns: 80,
        rows: 24,
    };
    let mut region = LiveRegion::new(Palette::Ansi, Reflow::Wraps);
    let mut text = MarkdownStream::new(usize::from(size.columns) - 1);
    let mut out = io::stdout();
    for piece in TEXT.split_inclusive(' ') {
        let live = Region {
            lines: vec![Line::from("> working")],
            caret: Some((0, 2)),
        };
        region.draw(&mut out, size, &text.push(piece), &live)?;
    }
    region.draw(&mut out, size, &text.finish(), &Region::default())?;
    region.finish(&mut out, size)
}
