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
        let fields = settings.fields().into_iter();
        let fields = fields.map(|(name, field)| (name.to_owned(), field.text(), field.origin()));
        let shown = fields.chain(settings.cluster_map.entries());
        let shown =
            shown.map(|(name, value, from)| (name, SettingView { value, from: from.to_string() }));
        match output {
            Output::Json => self.json(&shown.collect::<BTreeMap<_, _>>()),
            Output::Text => {
                let columns =
                    [("SETTING", Align::Left), ("VALUE", Align::Left), ("FROM", Align::Left)];
                let mut table = Table::new(&columns);
                for (name, SettingView { value, from }) in shown {
                    table.row([name, value, from]);
                }
                self.data(&table.rendered(""))
            }
        }
    }
}
