"""Every block of code in README.md and docs/, and the test that runs it.

A rule names a page, a language, and what the code contains; the first rule that fits counts. Most
blocks of `sh` are several commands, so each command has a rule of its own. A test is named as
`FOLDER/FILE.py::FUNCTION`, below `tests/`; `conftest.py` checks that a test of this folder reads
the blocks that it is named for. What no test can run has a reason, and `test_table_of_blocks.py`
accepts reasons for few languages and commands only.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from tests.docs import commands
from tests.docs.pages import Block, blocks

LANGUAGES: Final = ("python", "sh", "json", "jsonc", "js", "html", "toml", "text", "mermaid", "tsx")


class Rule(NamedTuple):
    """Which test runs a block."""

    page: str
    """Its name; empty: any."""
    language: str
    test: str
    """What runs it; beginning with `-`: why nothing can."""
    has: str = ""
    """What the code contains."""


SNIPPETS = "docs/test_snippets.py::"
README = "docs/test_readme.py::"
APPS = "docs/test_app_pages.py::"
LOGIN = "docs/test_login_page.py::"
DEPLOY = "docs/test_deploy_page.py::"
OWN_TESTS = "docs/test_testing_page.py::test_the_tests_of_a_block_pass"
AN_APP = "docs/test_framework_pages.py::test_a_block_is_an_app_that_answers"
WEB = "../web/fresh/tests/plain_page.test.ts::"
REACT = "../web/react/tests/surfaces.test.tsx::"
DRAWING = "- a drawing, of which nothing can be run"

RULES: Final = (
    # Python
    Rule(
        "README.md", "python", README + "test_the_ten_lines_show_a_chart_and_ask_before_they_export"
    ),
    Rule(
        "index.md",
        "python",
        README + "test_the_ten_lines_show_a_chart_and_ask_before_they_export",
        "Export as CSV?",
    ),
    Rule("index.md", "python", README + "test_the_agent_in_a_service_has_a_page_and_answers"),
    Rule("agents.md", "python", SNIPPETS + "test_an_example_agent_runs_to_its_end"),
    Rule("app.md", "python", APPS + "test_lifespan_is_open_while_the_app_is_served", "lifespan"),
    Rule("app.md", "python", APPS + "test_greeting_and_settings", "on_session_start"),
    Rule("app.md", "python", APPS + "test_feedback_reaches_the_function", "on_feedback"),
    Rule("app.md", "python", APPS + "test_function_without_async"),
    Rule(
        "ari.md",
        "python",
        SNIPPETS + "test_the_adapter_of_the_page_asks_and_ends_its_turn",
        "DrivenRuntime",
    ),
    Rule(
        "ari.md",
        "python",
        SNIPPETS + "test_the_gateway_of_the_page_asks_for_its_token",
        "HttpGateway",
    ),
    Rule(
        "ari.md",
        "python",
        SNIPPETS + "test_the_program_that_drives_a_runtime_allows_what_it_asks",
        "permission",
    ),
    Rule("ari.md", "python", SNIPPETS + "test_the_first_runtime_answers_as_the_page_says"),
    Rule(
        "client.md",
        "python",
        SNIPPETS + "test_the_client_that_answers_prints_the_whole_answer",
        "send_action",
    ),
    Rule("client.md", "python", SNIPPETS + "test_a_client_that_only_asks_prints_the_answer"),
    Rule(
        "components.md",
        "python",
        SNIPPETS + "test_the_components_page_begins_with_a_whole_app",
        "app = App",
    ),
    Rule("components.md", "python", SNIPPETS + "test_a_component_of_the_page_can_be_shown"),
    Rule(
        "control-plane.md",
        "python",
        SNIPPETS + "test_the_program_over_json_rpc_prints_the_facts_until_the_turn_ends",
        "websockets",
    ),
    Rule(
        "control-plane.md",
        "python",
        SNIPPETS + "test_the_program_that_starts_a_turn_prints_its_text",
    ),
    Rule("data.md", "python", APPS + "test_data_shows_as_tables_and_charts", "import pandas"),
    Rule("data.md", "python", APPS + "test_charts_and_converters_run"),
    Rule(
        "facts.md",
        "python",
        SNIPPETS + "test_the_program_that_reads_facts_prints_what_the_page_says",
    ),
    Rule(
        "login.md",
        "python",
        LOGIN + "test_app_with_a_provider_lets_in_nobody_without_a_login",
        "Oidc(",
    ),
    Rule(
        "login.md",
        "python",
        LOGIN + "test_user_of_the_middleware_is_the_user_of_the_agent",
        "FastAPI",
    ),
    Rule(
        "login.md",
        "python",
        LOGIN + "test_agent_in_a_django_project_stands_in_front_of_it",
        "django",
    ),
    Rule("login.md", "python", LOGIN + "test_hook_of_another_login_finds_its_user"),
    Rule(
        "protocol.md",
        "python",
        SNIPPETS + "test_the_renderer_of_the_protocol_s_page_prints_the_answer",
    ),
    Rule(
        "server.md",
        "python",
        SNIPPETS + "test_the_hook_lets_in_whom_it_knows_and_keeps_their_sessions_apart",
        "KEYS",
    ),
    Rule("telemetry.md", "python", SNIPPETS + "test_the_agent_with_a_span_of_its_own_answers"),
    Rule(
        "tools.md", "python", SNIPPETS + "test_the_app_of_the_tools_page_uses_a_tool_or_builds_one"
    ),
    Rule("tutorial.md", "", "docs/test_tutorial.py::test_the_tutorial_is_followed_line_by_line"),
    # Included examples
    Rule("", "python", "examples/test_echo.py::test_it_repeats_what_was_said", "Repeats each word"),
    Rule(
        "",
        "python",
        "examples/test_coding_agents.py::test_each_agent_answers_in_its_own_chat",
        "Two coding agents",
    ),
    Rule("", "python", "examples/test_webhook.py::", "A build server reports"),
    Rule(
        "", "python", "examples/test_fastapi_embed.py::", "A FastAPI service with an agent inside"
    ),
    Rule(
        "testing.md",
        "python",
        "docs/test_testing_page.py::test_the_tests_of_an_example_pass_in_its_folder",
        "&& pytest`",
    ),
    Rule(
        "testing.md",
        "python",
        "docs/test_testing_page.py::test_cell_of_a_notebook_runs",
        "\nasync with session(app)",
    ),
    Rule("testing.md", "python", OWN_TESTS),
    Rule("privacy.md", "python", "docs/test_privacy_page.py::test_old_sessions_are_deleted"),
    Rule(
        "",
        "python",
        "examples/test_job.py::"
        "test_progress_of_another_process_shows_on_every_screen_and_begins_no_turn",
        "A job in its own process",
    ),
    Rule("webhooks.md", "python", OWN_TESTS),
    Rule(
        "langgraph.md",
        "python",
        "examples/test_frameworks.py::test_a_graph_asks_and_goes_on_with_the_answer",
        "arp serve examples/",
    ),
    Rule(
        "openai-agents.md",
        "python",
        "examples/test_frameworks.py::test_a_hand_off_says_who_speaks_and_a_refund_is_approved",
        "arp serve examples/",
    ),
    Rule(
        "pydantic-ai.md",
        "python",
        "examples/test_frameworks.py::test_a_typed_output_is_a_chart",
        "arp serve examples/",
    ),
    Rule(
        "ag-ui.md",
        "python",
        "examples/test_frameworks.py::test_an_interrupt_of_ag_ui_is_an_approval_and_an_event_shows_a_table",
        "arp serve examples/",
    ),
    Rule("models.md", "python", "examples/test_frameworks.py::", "arp serve examples/"),
    Rule("mcp.md", "python", "examples/test_frameworks.py::", "arp serve examples/"),
    *(
        Rule(f"{page}.md", "python", AN_APP)
        for page in ("frameworks", "langgraph", "openai-agents", "pydantic-ai", "models", "mcp")
    ),
    # Configuration, markup, messages
    Rule(
        "deploy.md", "text", DEPLOY + "test_renderers_and_uploads_pass_through_nginx", "proxy_pass"
    ),
    Rule(
        "deploy.md",
        "text",
        "docs/test_deploy_in_docker.py::test_the_image_serves_its_users_and_keeps_its_ledger",
        "FROM python",
    ),
    Rule(
        "deploy.md",
        "text",
        DEPLOY + "test_the_service_starts_by_its_unit_and_stops_in_time",
        "[Service]",
    ),
    Rule(
        "theming.md",
        "html",
        WEB + "the HTML block in docs/theming.md changes colours and shapes of the chat",
    ),
    Rule("web.md", "tsx", REACT + "the component of docs/web.md draws a surface and closes it"),
    Rule("web.md", "html", WEB + "the HTML block in docs/web.md is a working chat"),
    Rule("index.md", "js", README + "test_the_javascript_prints_the_answer_as_it_comes"),
    Rule("server.md", "toml", SNIPPETS + "test_the_config_file_has_settings_that_there_are"),
    Rule(
        "control-plane.md",
        "json",
        SNIPPETS + "test_the_update_of_the_control_plane_page_changes_what_shows",
        "surface/update",
    ),
    Rule(
        "control-plane.md",
        "json",
        SNIPPETS + "test_requests_of_the_control_plane_are_answered_with_results",
    ),
    Rule("", "json", SNIPPETS + "test_every_line_of_a_block_is_a_message_of_one_direction"),
    Rule("tools.md", "jsonc", SNIPPETS + "test_the_steps_of_the_tools_page_are_steps"),
    # What is printed
    Rule(
        "components.md", "text", "docs/test_generated.py::test_the_generated_parts_are_up_to_date"
    ),
    Rule(
        "facts.md", "text", SNIPPETS + "test_the_program_that_reads_facts_prints_what_the_page_says"
    ),
    Rule(
        "models.md",
        "text",
        "docs/test_framework_pages.py::test_a_model_without_a_key_names_the_variable_as_the_page_does",
    ),
    Rule(
        "protocol.md", "text", SNIPPETS + "test_a_conversation_of_the_protocol_page_is_of_messages"
    ),
    Rule(
        "control-plane.md",
        "text",
        SNIPPETS + "test_printed_json_has_the_fields_that_the_page_shows",
    ),
    Rule("ledger.md", "text", SNIPPETS + "test_printed_json_has_the_fields_that_the_page_shows"),
    Rule("architecture.md", "text", DRAWING),
    Rule("protocol.md", "mermaid", DRAWING),
)

A_LEDGER = "commands/test_printing.py::test_a_command_prints_only_what_can_be_seen"
SERVING = "test_cli.py::test_every_way_in_is_named_when_it_is_ready"

COMMANDS: Final = (
    # (what the command is, as a pattern; what runs it)
    (
        r"docker (build|run) ",
        "docs/test_deploy_in_docker.py::test_the_image_serves_its_users_and_keeps_its_ledger",
    ),
    (
        r"curl .*(server!|_api/chats)",
        SNIPPETS + "test_what_curl_asks_in_the_docs_of_the_server_is_answered",
    ),
    (
        r"curl .*openapi.json",
        "dev_tools/test_openapi.py::test_the_server_serves_the_committed_document",
    ),
    (
        r"arp conformance ledger ",
        "commands/test_conformance_ledger.py::test_the_commands_of_the_docs_run_where_an_app_is",
    ),
    (
        r"arp conformance store ",
        "conformance/test_store_suite.py::test_the_commands_of_the_docs_run",
    ),
    (
        r"curl .*my-session|arp evidence (export|show|verify) my-session|arp replay my-session",
        SNIPPETS + "test_the_first_commands_of_the_evidence_page_export_verify_and_play",
    ),
    (
        r"arp replay case.json",
        "commands/test_rerun.py::test_an_agent_that_does_the_same_gives_no_difference",
    ),
    (r"arp connect stdio:.?node", "examples/test_node_agent.py::"),
    (
        r"arp (connect|serve) .*(ag-ui:|ag_ui)",
        "examples/test_frameworks.py::test_an_agent_at_an_address_does_the_same",
    ),
    (
        r"\S*arp connect ",
        "renderers/terminal/test_connect.py::test_a_session_from_the_first_word_to_the_last",
    ),
    (r"arp render", "commands/test_replay.py::test_the_messages_can_be_drawn_by_arp_render"),
    (
        r"printf ",
        "renderers/terminal/test_connect.py::test_a_pipe_says_its_lines_one_after_the_other",
    ),
    (
        r"arp events ",
        "commands/test_events.py::test_each_fact_is_a_line_without_control_characters",
    ),
    (r"arp sessions", "commands/test_sessions.py::test_file_lists_its_sessions"),
    (r"arp feedback ", "server/test_user_routes.py::"),
    (r"arp token ", "commands/test_token.py::test_list_shows_what_became_of_each_and_no_secret"),
    (r"arp tools ", "commands/test_tools.py::test_server_that_others_can_reach_needs_a_token"),
    (r"arp ari serve .*--tls", "commands/test_ari_serving.py::test_grpc_and_http_with_tls"),
    (r"arp ari serve ", "commands/test_ari_serving.py::test_one_runtime_over_grpc_and_http"),
    (r"arp app-server ", "server/test_app_server.py::"),
    (
        r"arp serve .*--oidc",
        "examples/test_oidc_login.py::test_command_signs_people_in_and_takes_tokens_beside",
    ),
    (r"arp serve .*--login-url", "test_cli.py::test_links_of_a_login_elsewhere_are_set_by_flags"),
    (
        r"arp serve .*--trust-proxy",
        DEPLOY + "test_the_service_starts_by_its_unit_and_stops_in_time",
    ),
    (
        r"arp serve .*--runtime",
        "test_cli.py::test_the_runtime_is_named_by_file_environment_and_flag",
    ),
    (r"arp serve .*--model", "examples/test_frameworks.py::"),
    (
        r"arp serve .*--otel",
        "test_cli.py::test_telemetry_is_off_until_a_flag_a_file_or_the_standard_variables_want_it",
    ),
    (
        r"arp serve .*--stdio",
        "examples/test_stdio_child.py::test_the_parent_shows_every_message_and_the_answer",
    ),
    (r"arp serve .*(--dial|--unix|--grpc)", SERVING),
    (
        r"arp serve (mypackage|app.py:)",
        "test_cli.py::test_target_is_a_file_or_a_module_with_or_without_a_name",
    ),
    (r"arp serve app.py$", "docs/test_tutorial.py::test_the_tutorial_is_followed_line_by_line"),
    (
        r"arp serve examples/(\w+)/app.py$",
        SNIPPETS + "test_an_example_can_be_served_as_the_page_says",
    ),
    (r"uvicorn --app-dir examples/", SNIPPETS + "test_an_example_is_an_application_of_its_server"),
    (r"node .*examples/node_renderer", "examples/test_node_renderer.py::"),
    (r"python examples/django_login", "examples/test_django_login.py::"),
    (
        r"python examples/stdio_child",
        "examples/test_stdio_child.py::test_the_parent_shows_every_message_and_the_answer",
    ),
    (
        r"make (demo|install|test|docs|walk|bench)",
        SNIPPETS + "test_commands_can_be_typed_as_they_stand",
    ),
    (r"npm (install|run dev)", "../web/fresh/tests/vue.test.ts::"),
    (
        r"pip install agent-rendering-protocol\[",
        "- `make release` installs the wheel and resolves each extra; a test checks the names",
    ),
    (
        r"pip install pytest",
        "- no code of ours; `make release` follows the tutorial, which installs the same",
    ),
)


@cache
def rows() -> tuple[tuple[Block, str], ...]:
    """Return each block with what runs it; one of `sh` once for each command.

    Raises:
        AssertionError: A block has no rule.
    """
    found: list[tuple[Block, str]] = []
    for block in blocks(*LANGUAGES, ""):
        rule = next((one for one in RULES if _fits(one, block)), None)
        if rule is not None:
            found.append((block, rule.test))
        elif block.language == "sh":
            found += [(block, runner(words)) for words in commands.commands(block.text)]
        else:
            raise AssertionError(f"{block}: no test runs this block; say so in {__name__}")
    return tuple(found)


def _fits(rule: Rule, block: Block) -> bool:
    return (
        rule.page in ("", block.page)
        and rule.language in ("", block.language)
        and rule.has in block.text
    )


def runner(words: list[str]) -> str:
    """Return what runs a command of a shell.

    Raises:
        AssertionError: Nothing does.
    """
    typed = " ".join(words)
    for pattern, test in COMMANDS:
        if re.match(pattern, typed):
            return test
    raise AssertionError(f"no test runs: {typed}")


@cache
def claimed(test: str) -> frozenset[str]:
    """Return the blocks, as PAGE:LINE, that a test runs by the rules for whole blocks."""
    return frozenset(
        str(block) for block, named in rows() if named == test and block.language != "sh"
    )
