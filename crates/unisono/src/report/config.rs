//! Settings with their origins.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use crate::report::table::{Align, Table};
use crate::report::{Console, Output};
use crate::settings::Settings;

#[derive(Serialize)]
struct SettingView {
    value: String,
    from: String,
}

impl Console {
    /// Prints every setting.
    pub(crate) fn settings(&mut self, settings: &Settings, output: Output) -> io::Result<()> {
        let shown = settings.fields().into_iter().map(|(name, field)| {
            (name, SettingView { value: field.text(), from: field.origin().to_string() })
        });
        match output {
            Output::Json => self.json(&shown.collect::<BTreeMap<_, _>>()),
            Output::Text => {
                let columns =
                    [("SETTING", Align::Left), ("VALUE", Align::Left), ("FROM", Align::Left)];
                let mut table = Table::new(&columns);
                for (name, SettingView { value, from }) in shown {
                    table.row([name.to_owned(), value, from]);
                }
                self.data(&table.rendered(""))
            }
        }
    }
}
