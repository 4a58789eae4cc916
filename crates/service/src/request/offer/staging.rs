//! The files that an offer has moved for its job: `jsdl:DataStaging`, checked against the provider's rules and the party's files.

use domain::agreement::{Source, StagedFile};
use domain::catalogue::is_file_name;
use execution::job::folder::outputs::Stream;
use wsag::job_definition::{DataStaging, JobDefinition};
use wsag::ns;
use wsag::terms::{ServiceDescription, Term};

use super::OfferCheck;

/// Files that are moved for one job at most: as many as a person names.
const FILES_MAX: usize = 100;

/// The elements of a job that are about one file.
#[derive(Default)]
struct Nth {
    staging: usize,
    source: usize,
    target: usize,
    bytes: usize,
}

impl Nth {
    /// Those after these of a file.
    fn pass(&mut self, file: &DataStaging) {
        self.staging += 1;
        self.source += usize::from(file.source.is_some());
        self.target += usize::from(file.target.is_some());
        self.bytes += usize::from(file.bytes.is_some());
    }
}

impl OfferCheck<'_> {
    /// The files to be moved for a job, of which its arguments name these.
    pub(super) fn staging(&mut self, definition: &JobDefinition, named: &[&str]) -> Vec<StagedFile> {
        let mut nth = self.staging_before(definition);
        if definition.staging.len() > FILES_MAX {
            let message = format!("at most {FILES_MAX} files are moved for one job");
            self.violation(ns::JSDL, "DataStaging", nth.staging + FILES_MAX, message);
            return Vec::new();
        }
        let mut files: Vec<StagedFile> = Vec::new();
        for file in &definition.staging {
            if let Some(message) = fault_of_file_name(file, named, &files) {
                self.violation(ns::JSDL, "FileName", nth.staging, message);
            }
            let source = file.source.as_deref().map(|source| self.staging_source(source));
            let source = source.and_then(|found| {
                found
                    .map_err(|message| self.violation(ns::JSDL, "Source", nth.source, message))
                    .ok()
            });
            if let Some(Err(why)) = file.target.as_deref().map(|target| self.address(target)) {
                self.violation(ns::JSDL, "Target", nth.target, format!("to be sent there: {why}"));
            }
            files.push(StagedFile {
                name: file.file_name.clone(),
                source,
                target: file.target.clone(),
                bytes: file.bytes,
                removed: file.delete_on_termination.unwrap_or(false),
            });
            let declared =
                declared_staging_bytes(&files, is_brought).max(declared_staging_bytes(&files, is_sent));
            let most = self.service.staging.bytes_max;
            if file.bytes.is_some() && declared > most {
                let message = format!("at most {most} bytes of files may be moved one way for a job");
                self.violation(ns::BSP, "Bytes", nth.bytes, message);
            }
            nth.pass(file);
        }
        files
    }

    /// Refuses files that are to be moved where no job is run.
    pub(super) fn no_staging(&mut self, definition: &JobDefinition) {
        if !definition.staging.is_empty() {
            let nth = self.staging_before(definition).staging;
            let message = "files are moved for a job: an application is expected beside them";
            self.violation(ns::JSDL, "DataStaging", nth, message);
        }
    }

    /// Bytes of the party's files that a job is given, by its arguments and under names of their own.
    pub(super) fn uploaded_and_staged_bytes(&self, named: &[&str], staging: &[StagedFile]) -> u64 {
        let staged = staging.iter().filter_map(|file| match &file.source {
            Some(Source::Upload(name)) => Some(name.as_str()),
            _ => None,
        });
        let files = &self.service.files;
        let found = named.iter().copied().chain(staged);
        let found = found.filter_map(|name| files.find(self.party, name)?.metadata().ok());
        found.map(|meta| meta.len()).sum()
    }

    /// Where a file comes from; what is expected where it cannot come from there.
    fn staging_source(&self, source: &str) -> Result<Source, String> {
        if is_staging_address(source) {
            self.address(source)
                .map_err(|why| format!("to be brought from there: {why}"))?;
            return Ok(Source::Address(source.to_owned()));
        }
        if is_file_name(source) && self.service.files.find(self.party, source).is_some() {
            return Ok(Source::Upload(source.to_owned()));
        }
        Err(
            "an address with http or https, or the name of a file that you have uploaded, is expected"
                .to_owned(),
        )
    }

    /// Whether an address may be reached; what is expected where it may not.
    fn address(&self, address: &str) -> Result<(), String> {
        self.service.staging.allowed.check(address)
    }

    /// The elements of the definitions before one.
    fn staging_before(&self, definition: &JobDefinition) -> Nth {
        let mut nth = Nth::default();
        for term in self.offer.terms.flatten() {
            let Term::ServiceDescription(description) = term else {
                continue;
            };
            let ServiceDescription::JobDefinition(job) = &description.content else {
                continue;
            };
            if std::ptr::eq(&raw const **job, definition) {
                break;
            }
            job.staging.iter().for_each(|file| nth.pass(file));
        }
        nth
    }
}

/// What is wrong with the name of a file in a job's folder.
fn fault_of_file_name(file: &DataStaging, named: &[&str], others: &[StagedFile]) -> Option<String> {
    let name = file.file_name.as_str();
    if !is_file_name(name) {
        let message = "the name of one file in the job's folder is expected: letters, digits, _, . and -, without folders";
        return Some(message.to_owned());
    }
    if others.iter().any(|other| other.name == name) {
        return Some(format!(
            "{name} stands there twice: a file comes from one place, and goes to one"
        ));
    }
    let is_given = file.source.is_some();
    if is_given && Stream::from_word(name).is_some() {
        return Some(format!(
            "{name} is the job's own output: another name is expected"
        ));
    }
    let clashes = named.contains(&name);
    clashes.then(|| format!("{name} is the uploaded file of an argument: another name is expected"))
}

fn is_staging_address(source: &str) -> bool {
    let scheme = source
        .split_once("://")
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|scheme| scheme == "http" || scheme == "https")
}

fn is_brought(file: &StagedFile) -> bool {
    matches!(file.source, Some(Source::Address(_)))
}

fn is_sent(file: &StagedFile) -> bool {
    file.target.is_some()
}

/// Declared bytes of files that go one way.
fn declared_staging_bytes(files: &[StagedFile], goes: fn(&StagedFile) -> bool) -> u64 {
    let bytes = files
        .iter()
        .filter(|file| goes(file))
        .filter_map(|file| file.bytes);
    bytes.fold(0, u64::saturating_add)
}
