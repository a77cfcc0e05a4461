"""The commands, assembled into one application."""

from __future__ import annotations

import typer

from cachegraph.cli import bundles, clear, dir_and_key, doctor, list, prune, show, stats, verify, why_miss

app = typer.Typer(
    name="cachegraph",
    help="Look at, prune and clear a cachegraph cache directory.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command("dir")(dir_and_key.dir_command)
app.command("stats")(stats.stats_command)
app.command("list")(list.list_command)
app.command("show")(show.show_command)
app.command("why-miss")(why_miss.why_miss_command)
app.command("prune")(prune.prune_command)
app.command("verify")(verify.verify_command)
app.command("doctor")(doctor.doctor_command)
app.command("export")(bundles.export_command)
app.command("import")(bundles.import_command)
app.command("key")(dir_and_key.key_command)
app.command("clear")(clear.clear_command)
