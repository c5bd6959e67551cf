//! Kubernetes quantities: `500m`, `2`, `1.5Gi`, `1e3`.

use std::fmt;

use serde::{Serialize, Serializer};

/// An amount of a resource. Keeps the text it was written as.
#[derive(Clone, Debug)]
pub struct Quantity {
    text: String,
    /// Thousandths of a unit, rounded up, as Kubernetes rounds.
    milli: u128,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not of the form number and suffix.
    #[error(
        "`{0}` is not an amount: write a number, with a suffix such as m, k, M, G, Ki, Mi or Gi"
    )]
    Malformed(String),
    /// Below zero.
    #[error("`{0}` is below zero")]
    Negative(String),
    /// Does not fit.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    ///
    /// When the text is not a quantity, or is below zero or too large.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let malformed = || QuantityError::Malformed(text.to_owned());
        let too_large = || QuantityError::TooLarge(text.to_owned());
        let number_end = text
            .find(|it: char| !(it.is_ascii_digit() || it == '.' || it == '+' || it == '-'))
            .unwrap_or(text.len());
        let (number, suffix) = text.split_at(number_end);
        if number.starts_with('-') {
            return Err(QuantityError::Negative(text.to_owned()));
        }
        let number = number.strip_prefix('+').unwrap_or(number);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) {
            return Err(malformed());
        }
        let digits: u128 = digits.parse().map_err(|_| too_large())?;
        let (multiplier, exponent) = scale(suffix).ok_or_else(malformed)?;
        let fraction = i32::try_from(fraction.len()).map_err(|_| too_large())?;
        // The value is digits × multiplier × 10^power thousandths.
        let power = exponent - fraction + 3;
        let scaled = digits.checked_mul(multiplier).ok_or_else(too_large)?;
        let factor = 10_u128.checked_pow(power.unsigned_abs()).ok_or_else(too_large)?;
        let milli = if power < 0 {
            scaled.div_ceil(factor)
        } else {
            scaled.checked_mul(factor).ok_or_else(too_large)?
        };
        Ok(Self { text: text.to_owned(), milli })
    }

    /// A whole number of units.
    pub fn of(units: u64) -> Self {
        Self { text: units.to_string(), milli: u128::from(units) * 1000 }
    }

    /// Whole units, rounded up: CPUs, GPUs, bytes.
    pub fn whole(&self) -> u64 {
        u64::try_from(self.milli.div_ceil(1000)).unwrap_or(u64::MAX)
    }

    /// Thousandths of a unit, rounded up.
    pub fn milli(&self) -> u64 {
        u64::try_from(self.milli).unwrap_or(u64::MAX)
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Quantity {
    /// Two quantities are equal when they are the same amount, however written.
    fn eq(&self, other: &Self) -> bool {
        self.milli == other.milli
    }
}

impl Eq for Quantity {}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// The factor and the power of ten that a suffix stands for.
fn scale(suffix: &str) -> Option<(u128, i32)> {
    let decimal = |power| Some((1, power));
    let binary = |power| Some((1_u128 << (10 * power), 0));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            let power: i32 = digits.parse().ok()?;
            (power.abs() <= 30).then_some((1, power))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_kubernetes_reads_them() {
        let milli = |text| Quantity::parse(text).map(|it| it.milli());
        assert_eq!(milli("500m"), Ok(500));
        assert_eq!(milli("1"), Ok(1000));
        assert_eq!(milli("+2.5"), Ok(2500));
        assert_eq!(milli("2Ki"), Ok(2_048_000));
        assert_eq!(milli("1.5Gi"), Ok(1_610_612_736_000));
        assert_eq!(milli("1e3"), Ok(1_000_000));
        assert_eq!(milli("1E"), Ok(u64::try_from(10_u128.pow(21)).unwrap_or(u64::MAX)));
        assert_eq!(milli("1n"), Ok(1), "what is below a thousandth is rounded up");
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", ".", "Gi", "1.2.3", "1gb", "1 Gi", "0x10", "1e999", "--1", "1-1"] {
            assert!(Quantity::parse(text).is_err(), "{text:?} was read");
        }
        assert_eq!(Quantity::parse("-1"), Err(QuantityError::Negative("-1".to_owned())));
        assert!(Quantity::parse(&"9".repeat(60)).is_err());
    }

    #[test]
    fn two_ways_to_write_one_amount_are_equal() {
        assert_eq!(Quantity::parse("1000m").unwrap(), Quantity::of(1));
    }
}
