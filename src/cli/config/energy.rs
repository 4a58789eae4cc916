//! `[pricing.energy]` of the configuration: the power of nodes, and what energy costs over time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use scheduler::Time;
use serde::Deserialize;
use wsag::time::DateTime;

use super::ranges::{price, within};
use crate::planner::{Energy, Kwh, Watts};

/// More power than that of a rack is a slip of the pen.
const WATTS_MAX: u32 = 1_000_000;
/// Coal has some 1,000 grams for a kilowatt-hour.
const GRAMS_MAX: u32 = 100_000;
/// Lines of a series at most: ten years of hours.
const SERIES_MAX: usize = 100_000;

/// The table as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnergyPrices {
    /// The price of a kilowatt-hour, where it is always the same.
    kwh: Option<String>,
    /// Grams of carbon dioxide for a kilowatt-hour, beside `kwh`.
    kwh_grams: Option<u32>,
    /// A file of prices over time.
    series: Option<PathBuf>,
    /// What a kilogram of carbon dioxide counts where places are compared.
    carbon_kg: Option<String>,
    #[serde(rename = "resource")]
    resources: Vec<Power>,
    /// The lines of the series.
    #[serde(skip)]
    lines: Vec<Kwh>,
}

/// The power of a node of a resource.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Power {
    name: String,
    busy_watts: u32,
    #[serde(default)]
    idle_watts: u32,
}

impl EnergyPrices {
    /// Reads the series, whose path may be meant from a folder.
    ///
    /// # Errors
    /// The key, the line and the expected value.
    pub(super) fn read_series(&mut self, folder: &Path) -> Result<(), String> {
        let Some(file) = &self.series else { return Ok(()) };
        let wrong = |why: String| format!("pricing.energy.series: {}: {why}", file.display());
        let text = std::fs::read_to_string(folder.join(file)).map_err(|why| wrong(why.to_string()))?;
        let lines = text.lines().zip(1..);
        let lines = lines.filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
        let read = lines
            .map(|(line, number)| tariff_step(line).map_err(|why| wrong(format!("line {number}: {why}"))));
        self.lines = read.collect::<Result<_, _>>()?;
        if self.lines.is_empty() || self.lines.len() > SERIES_MAX {
            let found = self.lines.len();
            return Err(wrong(format!("expected 1 to {SERIES_MAX} lines, found {found}")));
        }
        Ok(())
    }

    /// The energy of resources of these names.
    ///
    /// # Errors
    /// The key and the expected value.
    pub(super) fn energy(&self, names: &[&str]) -> Result<Energy, String> {
        let mut watts = BTreeMap::new();
        for (index, power) in self.resources.iter().enumerate() {
            let key = format!("pricing.energy.resource[{index}]");
            if !names.contains(&power.name.as_str()) {
                let name = &power.name;
                return Err(format!(
                    "{key}.name: expected the name of a resource, found {name:?}"
                ));
            }
            within(&format!("{key}.busy_watts"), power.busy_watts, 1..=WATTS_MAX)?;
            within(
                &format!("{key}.idle_watts"),
                power.idle_watts,
                0..=power.busy_watts,
            )?;
            let (busy, idle) = (power.busy_watts, power.idle_watts);
            if watts.insert(power.name.clone(), Watts { busy, idle }).is_some() {
                return Err(format!("{key}.name: {:?} has its power already", power.name));
            }
        }
        let tariff = match (&self.kwh, &self.series) {
            (Some(kwh), None) => {
                within("pricing.energy.kwh_grams", self.kwh_grams, 0..=GRAMS_MAX)?;
                vec![Kwh {
                    from: Time(0),
                    micros: price("pricing.energy.kwh", kwh)?,
                    grams: self.kwh_grams.unwrap_or(0),
                }]
            }
            (None, Some(_)) if self.kwh_grams.is_some() => {
                return Err(
                    "pricing.energy.kwh_grams: expected beside kwh only; a series has the grams in its lines"
                        .to_owned(),
                );
            }
            (None, Some(_)) => self.lines.clone(),
            _ => return Err("pricing.energy: expected one of kwh and series".to_owned()),
        };
        let carbon = self.carbon_kg.as_deref();
        let carbon = carbon.map_or(Ok(0), |text| price("pricing.energy.carbon_kg", text))?;
        Energy::new(watts, tariff, carbon).ok_or_else(|| "pricing.energy.series: expected a line".to_owned())
    }
}

/// A line of a series: from when on, the price of a kilowatt-hour, and the grams of carbon dioxide if it has them.
fn tariff_step(line: &str) -> Result<Kwh, String> {
    let mut fields = line.split(',').map(str::trim);
    let from = fields.next().unwrap_or_default();
    let at: Result<DateTime, _> = from.parse();
    let at = at.map_err(|_| format!("expected an instant such as 2027-01-31T08:00:00Z, found {from:?}"))?;
    let micros = price("price", fields.next().unwrap_or_default())?;
    let grams = fields.next().map_or(Ok(0), str::parse);
    let grams = grams.ok().filter(|grams| *grams <= GRAMS_MAX);
    let grams = grams.ok_or_else(|| format!("expected 0 to {GRAMS_MAX} grams"))?;
    match fields.next() {
        None => Ok(Kwh {
            from: Time(at.floor()),
            micros,
            grams,
        }),
        Some(more) => Err(format!(
            "expected two or three fields, found {more:?} beside them"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_an_instant_a_price_and_grams() {
        let of = tariff_step("2027-01-31T08:00:00Z, 0.21, 320").unwrap();
        assert_eq!((of.micros, of.grams), (210_000, 320));
        assert_eq!(tariff_step("2027-01-31T08:00:00+01:00,0").unwrap().grams, 0);
        for wrong in [
            "",
            "8 o'clock,1",
            "2027-01-31T08:00:00Z",
            "2027-01-31T08:00:00Z,-1",
            "2027-01-31T08:00:00Z,1,x",
            "2027-01-31T08:00:00Z,1,2,3",
        ] {
            assert!(tariff_step(wrong).is_err(), "{wrong:?}");
        }
    }
}
