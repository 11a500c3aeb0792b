export const commandNames: readonly string[] = [
  'ask',
  'init',
  'runs',
  'replay',
  'resume',
  'fork',
  'mcp',
  'serve',
  'devtools',
  'flow',
  'eval',
];

/** Ends every usage error. */
export const helpHint = '(for more information: npx @millrace/cli --help)';

/** Ends a usage error of a command, whose name may be meant as the first word of a question. */
export const commandHint = (name: string): string =>
  `(for more information: npx @millrace/cli ${name} --help; to ask a question that starts with this word: npx @millrace/cli ask "${name} …")`;

/** The usage error for a misspelled command. */
export const unknownCommand = (word: string, meant: string): string =>
  `error: unknown command '${word}'
(Did you mean ${meant}?)
(to ask it as a question: npx @millrace/cli ask ${word})
`;

export const programHelp = `
Without a question, it chats in a terminal (not with --json, which requires a question). In a pipe,
it reads the question from stdin; if stdin is empty, it asks a sample question. Ctrl-C interrupts
the answer, a second one aborts it. SIGTERM waits for the current step, and prints how to resume.
To ask a question that starts with the name of a command: npx @millrace/cli ask "runs in the family?"
To show the options of a command: npx @millrace/cli help runs

If OPENAI_API_KEY or ANTHROPIC_API_KEY is set, it uses that provider. If OPENAI_BASE_URL is set, it
uses that endpoint, which may be any OpenAI-compatible server such as Ollama. Otherwise, it uses the
demo model.

Every run is recorded in --store, else in MILLRACE_STORE ("none" records nothing), else in the
database millrace/millrace.db below XDG_STATE_HOME (~/.local/state). A name that ends in .db is a
SQLite database, and any other path a directory of files, which you can read. Only you can read the
runs. Runs that ended more than 30 days ago are removed.

Exit codes: 0 answered (an "I cannot" is an answer too), 1 failed, 2 wrong usage, 130 interrupted,
143 ended by a signal.

  $ npx @millrace/cli "What is 17.5% of 2349, and what time is it in Tokyo?"
  $ echo "How do interrupts work?" | npx @millrace/cli --quiet
  $ npx @millrace/cli --json "2 + 2" | jq -r .type
  $ npx @millrace/cli --session trip "What time is it in Tokyo?"
  $ npx @millrace/cli init my-agent
  $ npx @millrace/cli runs`;

export const runsHelp = `
A unique prefix of an id is enough. Resume a run that stopped with npx @millrace/cli resume. Use the id of a
step as --at of npx @millrace/cli fork.

  $ npx @millrace/cli runs
  $ npx @millrace/cli runs 3f2a
  $ npx @millrace/cli runs --all --json | jq -r 'select(.status == "failed") | .callId'`;

export const replayHelp = `
Pauses last up to 10 seconds. A replay calls no model and runs no tool. Ctrl-C stops it.

  $ npx @millrace/cli replay 3f2a --speed 4
  $ npx @millrace/cli replay 3f2a --speed max --json
  $ npx @millrace/cli replay 3f2a --follow`;

export const resumeHelp = `
Recorded steps are not repeated. The run continues with its model, unless --model names another one.

  $ npx @millrace/cli resume 3f2a`;

export const forkHelp = `
The original run does not change. The new run keeps the steps before --at and repeats the rest.
npx @millrace/cli runs <id> lists the steps.

  $ npx @millrace/cli fork 3f2a --at 2
  $ npx @millrace/cli fork 3f2a --at 2 --edit "1/0=It is 42."
  $ npx @millrace/cli fork 3f2a --question "And in Osaka?"`;

export const serveHelp = `
Serves the assistant to this machine until Ctrl-C or SIGTERM: a chat page at /, the AI SDK's useChat
at /api/chat, AG-UI at /api/ag-ui, A2A at /api/a2a, and the OpenAI API at /v1. Conversations and runs are kept in --store, as
described in npx @millrace/cli --help, so they survive a restart: the next server resumes unfinished calls.
Messages go to stderr.

  $ npx @millrace/cli serve
  $ npx @millrace/cli serve --port 8080 --store ./chats.db
  $ curl -N localhost:3000/api/chat -H 'content-type: application/json' \\
      -d '{"id":"1","messages":[{"role":"user","parts":[{"type":"text","text":"2 + 2?"}]}]}'`;

export const devtoolsHelp = `
Opens a page on this machine that shows the runs of --store as marble diagrams, also while other
processes run them: the server of npx @millrace/cli serve, or a program that records its calls there. Step
back in time, compare runs, and fork a run of this command at any step. Prints the address, which
only this machine can open, with a secret. Ctrl-C closes it.

To set breakpoints, run the agent with its devtools: npx @millrace/cli serve --devtools, or in a program of
yours devtools(agent) of @millrace/devtools.

  $ npx @millrace/cli devtools
  $ npx @millrace/cli devtools --store ./chats.db --port 8081`;

export const mcpHelp = `
Serves the calculator, the clock, the file reader and the search of the Millrace docs until the
client closes stdin, or until Ctrl-C or SIGTERM. Messages go to stderr. With --http, programs on this
machine can connect; if MILLRACE_MCP_TOKEN is set, they must send it as a bearer token. Calls of the
agent are not recorded. In the configuration of Claude Desktop and other clients:

  { "mcpServers": { "millrace": { "command": "npx", "args": ["@millrace/cli", "mcp"] } } }

  $ npx @millrace/cli mcp
  $ npx @millrace/cli mcp --agent --directory ~/notes
  $ npx @millrace/cli mcp --http 8808`;

export const flowHelp = `
A flow is a JSON document of components: https://github.com/millrace/millrace/tree/main/packages/flow
Options: npx @millrace/cli flow run --help

  $ npx @millrace/cli flow check support.json
  $ npx @millrace/cli flow run support.json "Where is order A-17?" --live
  $ npx @millrace/cli flow picture support.json > support.mmd
  $ npx @millrace/cli flow check canvas.json --from ragflow`;

export const flowRunHelp = `
All models of the document are the model of this command, and its tools are those of the assistant:
calculator, clock, read_file, search. Retrievers search the Markdown files of --documents. HTTP
components connect to public addresses only; {{secret.NAME}} is the variable MILLRACE_SECRET_NAME.
Functions need a program. People are asked in the terminal, or answer with --answer. Runs of flows
are not recorded.

Exit codes: as in npx @millrace/cli --help; 1 also if the flow waits for an external result.

  $ npx @millrace/cli flow run support.json "Where is order A-17?"
  $ npx @millrace/cli flow run review.json "Send it" --answer approve=yes --quiet`;

export const flowCheckHelp = `
Prints each problem with its path and a fix. With --from ragflow, it also prints what the canvas has
that the flow cannot have; with --json, the flow itself as well. Models, tools and other resources
are those of a program, so they are not checked.

Exit codes: 0 no problems, 1 problems or no flow, 2 wrong usage.

  $ npx @millrace/cli flow check support.json
  $ npx @millrace/cli flow check canvas.json --from ragflow --json | jq .document > flow.json`;

export const flowPictureHelp = `
Prints a Mermaid flowchart, which GitHub and most editors render. With --live, it runs the flow and
shows its components in the terminal, as npx @millrace/cli flow run --live does.

  $ npx @millrace/cli flow picture support.json
  $ npx @millrace/cli flow picture support.json "Where is order A-17?" --live`;

export const evalHelp = `
Each file is a module whose default export is an evaluation of @millrace/evals, which your project
needs: export default evaluate(agent, cases, scorers). The result is compared with a baseline next
to the file: support.eval.json for support.eval.mjs. If that does not exist, it is written, unless
the variable CI is set. Commit it. Ctrl-C shows the cases that have ended, and compares nothing.

Exit codes: 0 no regression, 1 a regression, a failed call or scorer, or in CI no baseline, 2 wrong
usage, 130 interrupted, 143 ended by a signal.

  $ npx @millrace/cli eval support.eval.mjs
  $ npx @millrace/cli eval support.eval.mjs --update
  $ npx @millrace/cli eval evals/*.mjs --json | jq 'select(.type == "case") | .passRate'`;
