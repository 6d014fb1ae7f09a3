"""`odf completion`: shell completion of commands, options and names."""

from __future__ import annotations

import click

from .output import write_exactly


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for commands, options, DataSets and Jobs.

    \b
    Example:
      echo 'eval "$(odf completion bash)"' >> ~/.bashrc
      echo 'eval "$(odf completion zsh)"' >> ~/.zshrc
      odf completion fish > ~/.config/fish/completions/odf.fish
    """
    from click.shell_completion import get_completion_class

    from .main import odf

    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"no completion for {shell}; use bash, zsh or fish")
    write_exactly(completer(odf, {}, "odf", "_ODF_COMPLETE").source())
