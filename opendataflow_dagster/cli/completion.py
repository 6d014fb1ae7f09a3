"""`odf completion`: the script that lets a shell complete commands, options and names."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands, options, DataSets and Jobs in a shell.

    \b
    Example:
      echo 'eval "$(odf completion bash)"' >> ~/.bashrc
      echo 'eval "$(odf completion zsh)"' >> ~/.zshrc
      odf completion fish > ~/.config/fish/completions/odf.fish
    """
    from click.shell_completion import get_completion_class

    from .main import odf

    chosen = get_completion_class(shell)
    if chosen is None:
        raise click.UsageError(f"no completion for {shell}; choose bash, zsh or fish")
    click.echo(chosen(odf, {}, "odf", "_ODF_COMPLETE").source())
