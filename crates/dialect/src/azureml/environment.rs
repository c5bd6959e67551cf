//! An environment: a reference to one that Azure ML knows, or an image written inline.

use unisono_job::{Image, Note};

use super::codes::NO_IMAGE;
use crate::kept::Kept;
use crate::notebook::Notebook;
use crate::tree::Node;
use crate::{clipped, codes};

/// The image an environment stands for; what only Azure ML can use of it is kept.
pub(super) fn image(
    node: Option<&Node>,
    kept: &mut Kept,
    notebook: &mut Notebook<'_>,
) -> Option<Image> {
    let node = node?;
    match node.text() {
        Some(reference) => named(reference, node, notebook),
        None => inline(node, kept, notebook),
    }
}

fn named(reference: &str, node: &Node, notebook: &mut Notebook<'_>) -> Option<Image> {
    if is_reference(reference) {
        return Some(Image::AzureEnvironment(reference.to_owned()));
    }
    let message = format!("`{}` is no environment reference", clipped(reference));
    let hint = match reference.strip_prefix("azureml:") {
        Some(name) if !name.is_empty() && !name.contains([':', '@']) => {
            format!("add the version: `azureml:{}:1`, or `@latest`", clipped(name))
        }
        Some(_) => "write `azureml:NAME:VERSION` or `azureml:NAME@LABEL`".to_owned(),
        None => format!(
            "write `azureml:NAME:VERSION`, or for a container image `environment: {{image: \"{}\"}}`",
            clipped(reference)
        ),
    };
    notebook.tell(Note::new(&codes::BAD_FORM, message).hint(hint), node);
    None
}

/// `azureml:NAME:VERSION`, `azureml:NAME@LABEL`, or the long form `azureml://…`.
fn is_reference(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("azureml:") else { return false };
    if rest.starts_with("//") {
        return rest.len() > 2;
    }
    let split = rest.rsplit_once(':').or_else(|| rest.rsplit_once('@'));
    split.is_some_and(|(name, version)| !name.is_empty() && !version.is_empty())
}

fn inline(node: &Node, kept: &mut Kept, notebook: &mut Notebook<'_>) -> Option<Image> {
    for key in ["name", "version"] {
        if let Some(value) = node.at(&[key]) {
            let note = Note::new(&codes::INVALID, format!("an inline environment has no {key}"))
                .hint("remove it, or refer to a registered environment: `azureml:NAME:VERSION`");
            notebook.tell(note, value);
        }
    }
    for key in ["conda_file", "build", "os_type"] {
        if let Some(value) = node.at(&[key]) {
            kept.set(&["environment", key], value.to_json());
            if key != "os_type" {
                let message = format!("Unisono builds no images: `{key}` has no effect");
                let note = Note::new(&codes::IGNORED, message)
                    .hint("build the image, and name the result as `image`");
                notebook.tell(note, value);
            }
        }
    }
    let image = node.at(&["image"]).or_else(|| node.at(&["docker", "image"]));
    match image.and_then(Node::text) {
        Some(image) => Some(Image::Container(image.to_owned())),
        None => {
            notebook.tell(Note::new(&NO_IMAGE, "the environment names no image"), node);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_has_a_name_and_a_version_or_label() {
        for text in [
            "azureml:hpc:3",
            "azureml:hpc@latest",
            "azureml:a:b:3",
            "azureml://registries/x/environments/y",
        ] {
            assert!(is_reference(text), "{text}");
        }
        for text in [
            "azureml:hpc",
            "azureml:hpc:",
            "azureml::3",
            "azureml:@x",
            "azureml://",
            "ubuntu:24.04",
            "",
        ] {
            assert!(!is_reference(text), "{text}");
        }
    }
}
