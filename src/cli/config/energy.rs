//! `[pricing.energy]` of the configuration: the power of nodes, and what energy costs over time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use address::{Policy, address_without_query, error_without_address};
use planner::{Energy, Kwh, Watts};
use reqwest::StatusCode;
use scheduler::Time;
use serde::Deserialize;
use wsag::time::DateTime;

use super::Config;
use super::ranges::{check_range, parse_price_in_range, signed_price};
use crate::cli::Failure;

/// More power than that of a rack is a slip of the pen.
const WATTS_MAX: u32 = 1_000_000;
/// Coal has some 1,000 grams for a kilowatt-hour.
const GRAMS_MAX: u32 = 100_000;
/// Seconds of a week.
const WEEK: u32 = 604_800;
/// Lines of a series at most: ten years of hours.
const SERIES_MAX: usize = 100_000;
/// Bytes of a series: so many lines are some 4 MB.
const BYTES_MAX: usize = 8 << 20;
/// How long it may take to read a series.
const FETCH_WAIT: Duration = Duration::from_secs(10);
/// How often a series is read where nothing is said, in seconds.
const SERIES_SECONDS: u32 = 3_600;
/// A series that could not be read is tried again after this time at the latest.
const RETRY: Duration = Duration::from_mins(1);

/// An operator's own address may lie anywhere.
const ANYWHERE: Policy = Policy {
    private_addresses: true,
};

/// The table as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnergyPrices {
    /// The price of a kilowatt-hour, where it is always the same; beside a series, until that has been read.
    kwh: Option<String>,
    /// Grams of carbon dioxide for a kilowatt-hour, beside `kwh`.
    kwh_grams: Option<u32>,
    /// A file of prices over time, or its address.
    series: Option<String>,
    /// How often it is read, in seconds.
    series_seconds: Option<u32>,
    /// What a kilogram of carbon dioxide counts where places are compared.
    carbon_kg: Option<String>,
    #[serde(rename = "resource")]
    resources: Vec<Power>,
    /// The lines of the series; none while it has not been read.
    #[serde(skip)]
    lines: Vec<Kwh>,
}

/// Prices of energy over time that stand elsewhere, and change there.
#[derive(Debug, Clone)]
pub(in crate::cli) struct EnergySeries {
    place: EnergySeriesSource,
    every: Duration,
    /// As they were read last; none while they have not been.
    pub(in crate::cli) lines: Vec<Kwh>,
}

/// Where a series stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EnergySeriesSource {
    File(PathBuf),
    /// The operator says it, so it may be any address.
    Address(String),
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
    /// The series, whose path may be meant from a folder, if there is one.
    pub(super) fn series(&self, folder: &Path) -> Option<EnergySeries> {
        let place = self.series.as_ref()?;
        Some(EnergySeries {
            place: if is_energy_address(place) {
                EnergySeriesSource::Address(place.clone())
            } else {
                EnergySeriesSource::File(folder.join(place))
            },
            every: Duration::from_secs(self.series_seconds.unwrap_or(SERIES_SECONDS).into()),
            lines: self.lines.clone(),
        })
    }

    /// Takes over the lines of the series.
    pub(super) fn set_lines(&mut self, lines: Vec<Kwh>) {
        self.lines = lines;
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
            check_range(&format!("{key}.busy_watts"), power.busy_watts, 1..=WATTS_MAX)?;
            check_range(
                &format!("{key}.idle_watts"),
                power.idle_watts,
                0..=power.busy_watts,
            )?;
            let (busy, idle) = (power.busy_watts, power.idle_watts);
            if watts.insert(power.name.clone(), Watts { busy, idle }).is_some() {
                return Err(format!("{key}.name: {:?} has its power already", power.name));
            }
        }
        check_range("pricing.energy.kwh_grams", self.kwh_grams, 0..=GRAMS_MAX)?;
        check_range("pricing.energy.series_seconds", self.series_seconds, 1..=WEEK)?;
        if let Some(address) = self.series.as_deref().filter(|place| is_energy_address(place)) {
            // The address may hold a secret, and is not repeated.
            let checked = ANYWHERE.check(address);
            checked.map_err(|why| format!("pricing.energy.series: {why}"))?;
        }
        let constant = match &self.kwh {
            Some(kwh) => Some(Kwh {
                from: Time(0),
                micros: signed_price("pricing.energy.kwh", kwh)?,
                grams: self.kwh_grams.unwrap_or(0),
            }),
            None if self.series.is_none() => {
                return Err("pricing.energy: expected kwh or series".to_owned());
            }
            None if self.kwh_grams.is_some() => {
                return Err(
                    "pricing.energy.kwh_grams: expected beside kwh only; a series has the grams in its lines"
                        .to_owned(),
                );
            }
            None => None,
        };
        let tariff = if self.lines.is_empty() {
            constant.into_iter().collect()
        } else {
            self.lines.clone()
        };
        let carbon = self.carbon_kg.as_deref();
        let carbon = carbon.map_or(Ok(0), |text| {
            parse_price_in_range("pricing.energy.carbon_kg", text)
        })?;
        Ok(Energy::new(watts, tariff, carbon))
    }
}

impl Config {
    /// The prices of energy over time, if they stand elsewhere.
    pub(in crate::cli) fn series(&self) -> Option<EnergySeries> {
        self.pricing.as_ref()?.series(&self.folder)
    }

    /// Reads the prices of energy over time, if they stand elsewhere. Where their address does not give them, they stay unknown, and
    /// it returns why.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the file, the line and the expected value.
    pub(in crate::cli) async fn read_energy_series(&mut self) -> Result<Option<String>, Failure> {
        let Some(series) = self.series() else {
            return Ok(None);
        };
        match series.read().await {
            Ok(lines) => self.set_energy_lines(lines),
            Err(why) if series.is_file() => return Err(Failure::Usage(format!("configuration: {why}"))),
            Err(why) => return Ok(Some(why)),
        }
        Ok(None)
    }

    /// Reads the prices of energy over time if they stand in a file. Those of an address stay as `last`, if that is of the same address,
    /// and else unknown: it may be silent, and is read beside.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the file, the line and the expected value.
    pub(in crate::cli) async fn read_energy_series_file(
        &mut self,
        last: Option<&EnergySeries>,
    ) -> Result<(), Failure> {
        let Some(series) = self.series() else {
            return Ok(());
        };
        if series.is_file() {
            self.read_energy_series().await?;
        } else if let Some(last) = last.filter(|last| last.is_same(&series)) {
            self.set_energy_lines(last.lines.clone());
        }
        Ok(())
    }

    fn set_energy_lines(&mut self, lines: Vec<Kwh>) {
        if let Some(prices) = &mut self.pricing {
            prices.set_lines(lines);
        }
    }
}

impl EnergySeries {
    /// Its lines as they are now, at least one. It takes ten seconds at most.
    ///
    /// # Errors
    /// Why it cannot be read; or the line and the expected value.
    pub(in crate::cli) async fn read(&self) -> Result<Vec<Kwh>, String> {
        let reading = async {
            match &self.place {
                EnergySeriesSource::File(file) => read_energy_file(file).await.map_err(|why| why.to_string()),
                EnergySeriesSource::Address(address) => fetch_energy_series(address).await,
            }
        };
        let text = match tokio::time::timeout(FETCH_WAIT, reading).await {
            Ok(read) => read,
            Err(_) => Err(format!("it takes longer than {} seconds", FETCH_WAIT.as_secs())),
        };
        let lines = text.and_then(|text| energy_tariff_steps(&text));
        lines.map_err(|why| format!("pricing.energy.series: {}: {why}", self.place_in_words()))
    }

    /// Whether it is one of the operator's own files, where a fault is a fault of the configuration. An address may be silent for
    /// reasons of its own.
    pub(in crate::cli) fn is_file(&self) -> bool {
        matches!(self.place, EnergySeriesSource::File(_))
    }

    /// Whether both stand in the same place.
    pub(in crate::cli) fn is_same(&self, other: &Self) -> bool {
        self.place == other.place
    }

    /// After what time it is to be read again.
    pub(in crate::cli) fn wait(&self, was_read: bool) -> Duration {
        if was_read {
            self.every
        } else {
            self.every.min(RETRY)
        }
    }

    fn place_in_words(&self) -> String {
        match &self.place {
            EnergySeriesSource::File(file) => file.display().to_string(),
            EnergySeriesSource::Address(address) => address_without_query(address).to_owned(),
        }
    }
}

async fn read_energy_file(file: &Path) -> std::io::Result<String> {
    let length = tokio::fs::metadata(file).await?.len();
    if length > BYTES_MAX as u64 {
        return Err(std::io::Error::other(format!(
            "expected at most {BYTES_MAX} bytes"
        )));
    }
    tokio::fs::read_to_string(file).await
}

/// Whether the place of a series is an address, and no file.
fn is_energy_address(place: &str) -> bool {
    let starts = |scheme: &str| {
        place
            .get(..scheme.len())
            .is_some_and(|place| place.eq_ignore_ascii_case(scheme))
    };
    starts("http://") || starts("https://")
}

/// Fetches the text of an address, which leads on to no other one.
async fn fetch_energy_series(address: &str) -> Result<String, String> {
    let target = ANYWHERE.resolved(address).await?;
    let client = target.client(|client| client)?;
    let sent = client.get(target.url).send().await;
    let mut answer = sent.map_err(|why| error_without_address(&why))?;
    if answer.status() != StatusCode::OK {
        return Err(format!("it answers {}", answer.status()));
    }
    let mut text = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(|why| error_without_address(&why))? {
        if text.len() + part.len() > BYTES_MAX {
            return Err(format!("expected at most {BYTES_MAX} bytes"));
        }
        text.extend_from_slice(&part);
    }
    String::from_utf8(text).map_err(|_| "expected text in UTF-8".to_owned())
}

/// The lines of a series.
fn energy_tariff_steps(text: &str) -> Result<Vec<Kwh>, String> {
    let lines = text.lines().zip(1..);
    let lines = lines.filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
    let read = lines
        .map(|(line, number)| parse_energy_tariff_step(line).map_err(|why| format!("line {number}: {why}")));
    let steps: Vec<Kwh> = read.collect::<Result<_, _>>()?;
    if steps.is_empty() || steps.len() > SERIES_MAX {
        let found = steps.len();
        return Err(format!("expected 1 to {SERIES_MAX} lines, found {found}"));
    }
    Ok(steps)
}

/// A line of a series: from when on, the price of a kilowatt-hour, and the grams of carbon dioxide if it has them.
fn parse_energy_tariff_step(line: &str) -> Result<Kwh, String> {
    let mut fields = line.split(',').map(str::trim);
    let from = fields.next().unwrap_or_default();
    let at: Result<DateTime, _> = from.parse();
    let at = at.map_err(|_| format!("expected an instant such as 2027-01-31T08:00:00Z, found {from:?}"))?;
    let micros = signed_price("price", fields.next().unwrap_or_default())?;
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
        let kwh = parse_energy_tariff_step("2027-01-31T08:00:00Z, 0.21, 320").unwrap();
        assert_eq!((kwh.micros, kwh.grams), (210_000, 320));
        assert_eq!(
            parse_energy_tariff_step("2027-01-31T08:00:00+01:00,0")
                .unwrap()
                .grams,
            0
        );
        assert_eq!(
            parse_energy_tariff_step("2027-01-31T08:00:00Z,-0.5")
                .unwrap()
                .micros,
            -500_000
        );
        for wrong in [
            "",
            "8 o'clock,1",
            "2027-01-31T08:00:00Z",
            "2027-01-31T08:00:00Z,-4001",
            "2027-01-31T08:00:00Z,1,-1",
            "2027-01-31T08:00:00Z,1,x",
            "2027-01-31T08:00:00Z,1,2,3",
        ] {
            assert!(parse_energy_tariff_step(wrong).is_err(), "{wrong:?}");
        }
    }
}
