//! Writing JSDL, in the order of its schema.

use std::borrow::Cow;

use crate::job::{Application, Bound, DataStaging, FilterKind, JobDefinition, RangeValue, Resources};
use crate::xml::datatypes::write_double;
use crate::xml::names::Named;
use crate::xml::writer::Xml;

impl JobDefinition {
    /// Writes the element.
    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.start_with("jsdl:JobDefinition", &["jsdl", "jsdl-posix"]);
        xml.start("jsdl:JobDescription");
        if self.job_name.is_some() || self.description.is_some() {
            xml.start("jsdl:JobIdentification");
            xml.optional_element("jsdl:JobName", self.job_name.as_deref());
            xml.optional_element("jsdl:Description", self.description.as_deref());
            xml.end();
        }
        if let Some(application) = &self.application {
            write_application(xml, application);
        }
        if self.resources != Resources::default() {
            write_resources(xml, &self.resources);
        }
        for staging in &self.staging {
            write_staging(xml, staging);
        }
        xml.end();
        xml.end();
    }
}

fn write_application(xml: &mut Xml, application: &Application) {
    xml.start("jsdl:Application");
    xml.element("jsdl:ApplicationName", &application.name);
    xml.optional_element("jsdl:ApplicationVersion", application.version.as_deref());
    if let Some(posix) = &application.posix {
        xml.start("jsdl-posix:POSIXApplication");
        for argument in &posix.arguments {
            xml.element("jsdl-posix:Argument", argument);
        }
        xml.optional_element("jsdl-posix:Input", posix.input.as_deref());
        xml.optional_element("jsdl-posix:Output", posix.output.as_deref());
        xml.optional_element("jsdl-posix:Error", posix.error.as_deref());
        xml.end();
    }
    xml.end();
}

fn write_resources(xml: &mut Xml, resources: &Resources) {
    xml.start("jsdl:Resources");
    if let Some(name) = &resources.cpu_architecture {
        xml.start("jsdl:CPUArchitecture");
        xml.element("jsdl:CPUArchitectureName", name);
        xml.end();
    }
    for (kind, name) in FilterKind::NAMES {
        if let Some(filter) = resources.filters.iter().find(|filter| filter.kind == *kind) {
            write_range(xml, format!("jsdl:{name}"), &filter.range);
        }
    }
    if let Some(nodes) = &resources.nodes {
        write_range(xml, "jsdl:TotalResourceCount", nodes);
    }
    xml.end();
}

fn write_range(xml: &mut Xml, name: impl Into<Cow<'static, str>>, range: &RangeValue) {
    xml.start(name);
    if let Some(upper) = &range.upper {
        write_bound(xml, "jsdl:UpperBoundedRange", upper);
    }
    if let Some(lower) = &range.lower {
        write_bound(xml, "jsdl:LowerBoundedRange", lower);
    }
    for exact in &range.exact {
        xml.start("jsdl:Exact");
        if let Some(epsilon) = exact.epsilon {
            xml.attribute("epsilon", &write_double(epsilon));
        }
        xml.text(&write_double(exact.value));
        xml.end();
    }
    for (lower, upper) in &range.ranges {
        xml.start("jsdl:Range");
        write_bound(xml, "jsdl:LowerBound", lower);
        write_bound(xml, "jsdl:UpperBound", upper);
        xml.end();
    }
    xml.end();
}

fn write_bound(xml: &mut Xml, name: &'static str, bound: &Bound) {
    xml.start(name);
    if bound.exclusive {
        xml.attribute("exclusiveBound", "true");
    }
    xml.text(&write_double(bound.value));
    xml.end();
}

fn write_staging(xml: &mut Xml, staging: &DataStaging) {
    xml.start("jsdl:DataStaging");
    xml.element("jsdl:FileName", &staging.file_name);
    xml.element("jsdl:CreationFlag", staging.creation_flag.name());
    xml.optional_element("jsdl:DeleteOnTermination", staging.delete_on_termination);
    for (name, uri) in [("jsdl:Source", &staging.source), ("jsdl:Target", &staging.target)] {
        if let Some(uri) = uri {
            xml.start(name);
            xml.element("jsdl:URI", uri);
            xml.end();
        }
    }
    xml.end();
}
