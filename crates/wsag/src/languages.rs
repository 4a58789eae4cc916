//! Languages of other systems that say when: elements of another namespace that mean what `arp:AllocationTimeConstraint` means.
//!
//! A document is read in the languages that its reader knows ([`crate::Document::parse_in`]). Where an element of such a language
//! stands, everything that asks for its name is told the name of our own: readers, rules, and the Locations of constraints, which
//! may name it in either language. So a constraint holds of the time in whichever language an offer says it.

use std::sync::Arc;

use crate::xml::ns::{ARP, usual_prefix};

/// The names of the elements of one language. All are of one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeLanguage {
    /// The namespace.
    pub namespace: String,
    /// What `arp:AllocationTimeConstraint` is called there.
    pub element: String,
    /// What `arp:StartTime` is called.
    pub start: String,
    /// What `arp:EndTime` is called.
    pub end: String,
    /// What `arp:Duration` is called: whole seconds.
    pub duration: String,
}

/// Our own name of the element, and of its three parts.
const ELEMENT: &str = "AllocationTimeConstraint";
const PARTS: [&str; 3] = ["StartTime", "EndTime", "Duration"];

/// Our own name for what another one means: namespace and local name, which is none for any.
pub(crate) type TermMeaning = (&'static str, Option<&'static str>);

/// The languages that a reader knows besides our own. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeLanguages(Arc<[Arc<TimeLanguage>]>);

impl TimeLanguage {
    /// What is wrong with its names, if anything is.
    ///
    /// # Errors
    /// The name of the field, and what is expected.
    pub fn check(&self) -> Result<(), String> {
        if self.namespace.is_empty() || usual_prefix(&self.namespace).is_some() {
            return Err("namespace: expected one that the protocol does not use".to_owned());
        }
        let names = [
            ("element", &self.element),
            ("start", &self.start),
            ("end", &self.end),
            ("duration", &self.duration),
        ];
        let parts = &names[1..];
        for (nth, (field, name)) in names.iter().enumerate() {
            let is_name = name.starts_with(crate::xml::guard::is_name_start)
                && name.chars().all(crate::xml::guard::is_name_char);
            if !is_name || name.len() > crate::guard::NAME_MAX {
                return Err(format!(
                    "{field}: expected the name of an element without a prefix"
                ));
            }
            if parts.iter().skip(nth).any(|(_, other)| nth > 0 && other == name) {
                return Err(format!("{field}: expected a name that no other part has"));
            }
        }
        Ok(())
    }

    fn parts(&self) -> [&str; 3] {
        [&self.start, &self.end, &self.duration]
    }

    /// Our own name of a part.
    fn part(&self, local: &str) -> Option<&'static str> {
        let at = self.parts().iter().position(|name| *name == local)?;
        Some(PARTS[at])
    }
}

impl TimeLanguages {
    /// The number of the language of which an element of this name is a time constraint, and our own name of it.
    pub(crate) fn of_element(&self, namespace: &str, local: &str) -> Option<(usize, &'static str)> {
        let is_it =
            |language: &Arc<TimeLanguage>| language.element == local && language.namespace == namespace;
        Some((self.0.iter().position(is_it)?, ELEMENT))
    }

    /// A language by its number.
    pub(crate) fn get(&self, number: usize) -> Option<&Arc<TimeLanguage>> {
        self.0.get(number)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Our own name of a part of a time constraint in a language by its number.
    pub(crate) fn meaning_of_part(
        &self,
        number: usize,
        namespace: &str,
        local: &str,
    ) -> Option<&'static str> {
        let language = self
            .get(number)
            .filter(|language| language.namespace == namespace)?;
        language.part(local)
    }

    /// These languages, and others that are not among them.
    #[must_use]
    pub fn with(&self, others: impl Iterator<Item = Arc<TimeLanguage>>) -> TimeLanguages {
        let mut all = self.0.to_vec();
        for other in others {
            if !all.contains(&other) {
                all.push(other);
            }
        }
        all.into_iter().collect()
    }

    /// The languages that a text may have been written in which was kept before some of these were known: all of them, each by itself,
    /// none.
    pub fn of_kept_texts(&self) -> impl Iterator<Item = TimeLanguages> {
        let single = self.0.iter().filter(|_| self.0.len() > 1);
        let single = single.map(|single| TimeLanguages::from_iter([Arc::clone(single)]));
        let none = (!self.is_empty()).then(TimeLanguages::default);
        std::iter::once(self.clone()).chain(single).chain(none)
    }

    /// What a name of a Location in one of the languages means.
    pub(crate) fn meaning(&self, namespace: &str, local: Option<&str>) -> Option<TermMeaning> {
        let of_namespace = |language: &&Arc<TimeLanguage>| language.namespace == namespace;
        let mut languages = self.0.iter().filter(of_namespace).peekable();
        languages.peek()?;
        let Some(local) = local else {
            return Some((ARP, None));
        };
        let meant = |language: &Arc<TimeLanguage>| {
            let is_whole = language.element == local;
            is_whole.then_some(ELEMENT).or_else(|| language.part(local))
        };
        languages.find_map(meant).map(|local| (ARP, Some(local)))
    }

    /// What a name without a namespace means where it is that of a part in one of the languages.
    pub(crate) fn meaning_of_local(&self, local: &str) -> Option<&'static str> {
        self.0.iter().find_map(|language| language.part(local))
    }
}

impl FromIterator<TimeLanguage> for TimeLanguages {
    fn from_iter<I: IntoIterator<Item = TimeLanguage>>(languages: I) -> Self {
        languages.into_iter().map(Arc::new).collect()
    }
}

impl FromIterator<Arc<TimeLanguage>> for TimeLanguages {
    fn from_iter<I: IntoIterator<Item = Arc<TimeLanguage>>>(languages: I) -> Self {
        Self(languages.into_iter().collect())
    }
}
