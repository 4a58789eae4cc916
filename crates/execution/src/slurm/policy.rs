//! The options of a site for jobs and reservations, beside Bespeak's own: a quality of service, a constraint, licences and
//! further options, for a resource, a party or an application.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Characters in one option or value.
const OPTION_LENGTH_MAX: usize = 256;
/// Options in one list.
const OPTIONS_MAX: usize = 32;

/// The options of sbatch that the service sets, or that would change the promise, between spaces.
const OWN_SBATCH: &str = "\
    account array begin chdir clusters comment constraint deadline dependency error exclude exclusive \
    export export-file get-user-env gid help hold ignore-pbs input job-name licenses mem mem-per-cpu \
    mem-per-gpu no-requeue nodefile nodelist nodes open-mode output oversubscribe parsable partition qos \
    quiet requeue reservation share signal spread-job test-only time time-min uid usage use-min-nodes user \
    verbose version wait wrap";

/// The keys of a reservation that the service sets, or that would give it other nodes, times or users,
/// between spaces.
const OWN_RESERVATION: &str = "\
    accounts corecnt cores duration endtime flags groups nodecnt nodecount nodes partitionname qos \
    reservationname skip starttime tres users";

/// The options of a site for jobs and reservations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlurmPolicy {
    /// The quality of service that jobs are submitted with; Slurm's default without.
    pub qos: Option<String>,
    /// The features that the nodes of a job must have.
    pub constraint: Option<String>,
    /// The licences that a job needs.
    pub licenses: Option<String>,
    /// Further options of sbatch, each `--name` or `--name=value`.
    pub sbatch_options: Vec<String>,
    /// Further options of reservations, each `Key=value`.
    pub reservation_options: Vec<String>,
}

/// The policies of one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlurmPolicies {
    /// Of all jobs and reservations.
    pub all: SlurmPolicy,
    /// For the jobs of a party, by its name.
    pub parties: BTreeMap<String, SlurmPolicy>,
    /// For the jobs of an application, by its name in the catalogue.
    pub applications: BTreeMap<String, SlurmPolicy>,
}

impl SlurmPolicies {
    /// The policy of the jobs of a party that run an application, and of their reservations; that is empty without a job.
    /// A single key is the application's, else the party's, else the resource's; lists are joined, the resource's first.
    pub fn of(&self, party: &str, application: &str) -> SlurmPolicy {
        let own = [self.parties.get(party), self.applications.get(application)];
        own.into_iter()
            .flatten()
            .fold(self.all.clone(), SlurmPolicy::with)
    }
}

impl SlurmPolicy {
    /// This policy where another one says nothing else, with the lists of both.
    fn with(self, more: &Self) -> Self {
        let joined =
            |first: Vec<String>, then: &[String]| first.into_iter().chain(then.iter().cloned()).collect();
        Self {
            qos: more.qos.clone().or(self.qos),
            constraint: more.constraint.clone().or(self.constraint),
            licenses: more.licenses.clone().or(self.licenses),
            sbatch_options: joined(self.sbatch_options, &more.sbatch_options),
            reservation_options: joined(self.reservation_options, &more.reservation_options),
        }
    }

    /// The options with one value, by their keys.
    fn single(&self) -> [(&'static str, &Option<String>); 3] {
        [
            ("qos", &self.qos),
            ("constraint", &self.constraint),
            ("licenses", &self.licenses),
        ]
    }

    /// Its options of sbatch.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = OsString> + '_ {
        let single = self
            .single()
            .into_iter()
            .filter_map(|(name, value)| Some(format!("--{name}={}", value.as_ref()?).into()));
        single.chain(self.sbatch_options.iter().map(Into::into))
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// The wrong key and the expected value, in words.
    pub fn check(&self) -> Result<(), String> {
        for (key, value) in self.single() {
            if let Some(value) = value.as_ref().filter(|value| !is_value_of_policy(value)) {
                return Err(format!(
                    "{key}: expected 1 to {OPTION_LENGTH_MAX} printable characters without spaces, found {value:?}"
                ));
            }
        }
        for (key, options) in [
            ("sbatch_options", &self.sbatch_options),
            ("reservation_options", &self.reservation_options),
        ] {
            if options.len() > OPTIONS_MAX {
                let found = options.len();
                return Err(format!("{key}: expected at most {OPTIONS_MAX}, found {found}"));
            }
        }
        self.sbatch_options
            .iter()
            .try_for_each(|sbatch_option| check_sbatch_option_of_policy(sbatch_option))?;
        self.reservation_options
            .iter()
            .try_for_each(|reservation_option| check_reservation_option_of_policy(reservation_option))
    }
}

fn check_sbatch_option_of_policy(option: &str) -> Result<(), String> {
    let wrong = || format!("sbatch_options: expected \"--name\" or \"--name=value\", found {option:?}");
    let (name, value) = option.split_once('=').unwrap_or((option, "-"));
    let name = name.strip_prefix("--").ok_or_else(wrong)?;
    let is_name = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if name.is_empty() || !is_name || !is_text_of_policy(value) {
        return Err(wrong());
    }
    // sbatch takes the beginning of a name for the name.
    let mut own_options = OWN_SBATCH.split_whitespace();
    match own_options.find(|own| own.starts_with(name)) {
        Some(own @ ("account" | "qos" | "constraint" | "licenses")) => Err(format!(
            "sbatch_options: expected no {option:?}: the key {own} says that"
        )),
        Some(own) => Err(format!(
            "sbatch_options: expected no {option:?}: Bespeak itself decides about --{own}"
        )),
        None => Ok(()),
    }
}

fn check_reservation_option_of_policy(option: &str) -> Result<(), String> {
    let wrong = || format!("reservation_options: expected \"Key=value\", found {option:?}");
    let (key, value) = option.split_once('=').ok_or_else(wrong)?;
    if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphabetic()) || !is_text_of_policy(value) {
        return Err(wrong());
    }
    // scontrol accepts the beginning of a key for the key, and a word that begins with a key, in upper or lower case.
    let key = key.to_ascii_lowercase();
    let mut own_keys = OWN_RESERVATION.split_whitespace();
    if own_keys.any(|own| own.starts_with(&key) || key.starts_with(own)) {
        return Err(format!(
            "reservation_options: expected no {option:?}: Bespeak itself decides about nodes, times, users and flags"
        ));
    }
    Ok(())
}

/// Whether a value is allowed for one option.
fn is_text_of_policy(value: &str) -> bool {
    (1..=OPTION_LENGTH_MAX).contains(&value.len()) && !value.chars().any(char::is_control)
}

/// Whether a value is allowed for one option and has no spaces.
fn is_value_of_policy(value: &str) -> bool {
    is_text_of_policy(value) && !value.starts_with('-') && !value.chars().any(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(sbatch: &[&str], reservation: &[&str]) -> SlurmPolicy {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        SlurmPolicy {
            sbatch_options: owned(sbatch),
            reservation_options: owned(reservation),
            ..SlurmPolicy::default()
        }
    }

    #[test]
    fn the_last_that_names_a_key_wins_and_lists_are_joined() {
        let named = |qos: &str, option: &str| SlurmPolicy {
            qos: Some(qos.into()),
            ..options(&[option], &[])
        };
        let policies = SlurmPolicies {
            all: SlurmPolicy {
                constraint: Some("fast".into()),
                ..named("normal", "--nice=1")
            },
            parties: [("physics".to_owned(), named("high", "--wckey=a"))].into(),
            applications: [("solver".to_owned(), named("long", "--gres=b"))].into(),
        };
        let said = |party: &str, application: &str| {
            let policy = policies.of(party, application);
            let words: Vec<_> = policy
                .arguments()
                .map(|argument| argument.into_string().unwrap())
                .collect();
            words.join(" ")
        };
        assert_eq!(said("x", ""), "--qos=normal --constraint=fast --nice=1");
        assert_eq!(
            said("physics", "x"),
            "--qos=high --constraint=fast --nice=1 --wckey=a"
        );
        assert_eq!(
            said("physics", "solver"),
            "--qos=long --constraint=fast --nice=1 --wckey=a --gres=b"
        );
    }

    #[test]
    fn what_the_service_sets_is_refused_also_where_it_is_shortened() {
        let fine = options(
            &["--ntasks-per-node=4", "--gres=gpu:1", "--nice", "--mail-type=END"],
            &["Features=fast", "Licenses=solver:2"],
        );
        assert_eq!(fine.check(), Ok(()));
        for wrong in [
            "--partition=x",
            "--part=x",
            "--nodes=2",
            "--time=5",
            "--uid=0",
            "--wrap=ls",
            "--qos=high",
            "--test-only",
            "-p x",
            "--",
            "--gres",
            "gres=gpu",
            "--gres=a\nb",
            "--gres=",
            "--=x",
            "--Nodes=2",
        ] {
            let found = options(&[wrong], &[]).check();
            assert_eq!(found.is_err(), wrong != "--gres", "{wrong}: {found:?}");
        }
        for wrong in [
            "Nodes=n1",
            "nod=n1",
            "NodeCnt=2",
            "StartTime=now",
            "start=now",
            "Users=root",
            "Flags=MAINT",
            "Flags",
            "Features+=x",
            "TRES=cpu=4",
            "TRESPerNode=cpu=4",
            "PartitionName=x",
            "Features=a\nb",
            "=x",
        ] {
            let found = options(&[], &[wrong]).check();
            assert!(found.is_err(), "{wrong}: {found:?}");
        }
        let too_many = options(&["--nice"; OPTIONS_MAX + 1], &[]).check();
        assert!(too_many.unwrap_err().contains("at most"));
        let spaced = SlurmPolicy {
            constraint: Some("a b".into()),
            ..SlurmPolicy::default()
        };
        assert!(spaced.check().unwrap_err().starts_with("constraint: "));
    }
}
