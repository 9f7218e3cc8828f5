"""The real command line as data: every command, and a parser that runs nothing."""

import typer

from oodscope.cli.app import app


def every_command():
    """Each command that does something, by its words: ``("data", "list")``."""
    found = {}

    def walk(command, path):
        if hasattr(command, "commands"):
            for name, child in command.commands.items():
                walk(child, (*path, name))
        if path and (not hasattr(command, "commands") or command.invoke_without_command):
            found[path] = command

    walk(typer.main.get_command(app), ())
    return found


def parse(arguments):
    """Parse a command line to the end; what it cannot mean is raised, and nothing is executed."""
    command, context = typer.main.get_command(app), None
    rest = list(arguments)
    path = "oodscope"
    while hasattr(command, "commands"):
        context = command.make_context(path, rest, parent=context)
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            return context
        name, command, rest = command.resolve_command(context, rest)
        path = name
    return command.make_context(path, rest, parent=context)
