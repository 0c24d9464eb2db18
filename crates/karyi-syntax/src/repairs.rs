//! Repairs that were needed to read a call, named after the published rules.
//!
//! Without any, and without a warning, strict mode reads the same call. End tags taken as text
//! (rules R2 and R3) make the text raw, so R4 stands for them; a missing `</tools>` (R8) belongs to
//! the block and is a warning.

/// A repair, named after its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Repair {
    /// `$KARYI<NAME>` was recognised.
    R1,
    /// Text was taken raw.
    R4,
    /// Raw text that also holds escapes was taken raw.
    R5,
    /// A CDATA wrapper holds `]]>`.
    R6,
    /// A tag or attribute was repaired.
    R7,
    /// A time had a unit.
    R9,
    /// A key was written otherwise.
    R10,
    /// An argument had another name, or a path stood in the text.
    R11,
    /// An explanation was left out.
    R12,
}

/// A set of repairs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Repairs(u16);

impl Repair {
    const ALL: [(Self, &'static str); 9] = [
        (Self::R1, "R1"),
        (Self::R4, "R4"),
        (Self::R5, "R5"),
        (Self::R6, "R6"),
        (Self::R7, "R7"),
        (Self::R9, "R9"),
        (Self::R10, "R10"),
        (Self::R11, "R11"),
        (Self::R12, "R12"),
    ];
}

impl Repairs {
    /// Adds one.
    pub(super) fn add(&mut self, repair: Repair) {
        self.0 |= 1 << repair as u8;
    }

    /// Empties the set; returns the codes that were in it, in order.
    pub(super) fn take(&mut self) -> Vec<&'static str> {
        let set = std::mem::take(&mut self.0);
        if set == 0 {
            return Vec::new();
        }
        let has = |(repair, _): &&(Repair, &str)| set & (1 << *repair as u8) != 0;
        Repair::ALL
            .iter()
            .filter(has)
            .map(|(_, code)| *code)
            .collect()
    }
}
