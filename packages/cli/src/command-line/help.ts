/** The names of the commands. A question may be one, too. */
export const commandNames: readonly string[] = ['ask', 'runs', 'replay', 'resume', 'fork'];

/** What a complaint ends with. */
export const helpHint = '(millrace --help tells more)';

/** What a complaint about the arguments of a command ends with: its name may have been meant as the first word of a question. */
export const commandHint = (name: string): string =>
  `(millrace ${name} --help tells more; to ask a question that begins with this word: millrace ask "${name} …")`;

/** What stands below the options of the program. */
export const programHelp = `
Without a question it chats in a terminal, but not with --json, which needs one; in a pipe it
waits for the question on stdin, and where that is empty asks one of its own. Ctrl-C ends the
answer politely, a second one at once; SIGTERM lets the step under way end, and tells how to go on.
A question whose first word is a command's name: millrace ask "runs in the family?"
The options of a command: millrace help runs

It asks OpenAI or Anthropic where OPENAI_API_KEY or ANTHROPIC_API_KEY is set, and any endpoint that
speaks OpenAI's chat completions, such as Ollama's, where OPENAI_BASE_URL is; else the demo model.

Every run is written down, readable by you alone: in --store, else MILLRACE_STORE ("none": nowhere),
else in millrace below XDG_STATE_HOME (~/.local/state). After 30 days those that have ended are removed.

Exit codes: 0 answered (an "I cannot" is an answer too), 1 failed, 2 wrong usage, 130 interrupted,
143 ended by a signal.

  $ millrace "What is 17.5% of 2349, and what time is it in Tokyo?"
  $ echo "How do interrupts work?" | millrace --quiet
  $ millrace --json "2 + 2" | jq -r .type
  $ millrace --session trip "What time is it in Tokyo?"
  $ millrace runs`;

/** What stands below the options of `runs`. */
export const runsHelp = `
The beginning of an id is enough, as long as no other begins with it. A run that was broken off goes on
with millrace resume; the ids of the steps are what millrace fork takes as --at.

  $ millrace runs
  $ millrace runs 3f2a
  $ millrace runs --all --json | jq -r 'select(.status == "failed") | .callId'`;

/** What stands below the options of `replay`. */
export const replayHelp = `
Pauses of more than 10 seconds are cut to that. Nothing is asked and nothing is done again. Ctrl-C stops.

  $ millrace replay 3f2a --speed 4
  $ millrace replay 3f2a --speed max --json
  $ millrace replay 3f2a --follow`;

/** What stands below the options of `resume`. */
export const resumeHelp = `
What is written down is not done again. It asks the model that the run has asked so far, unless --model
says otherwise.

  $ millrace resume 3f2a`;

/** What stands below the options of `fork`. */
export const forkHelp = `
The run itself stays as it is. What stands before the step is kept, and what is behind is done anew;
millrace runs <id> lists the steps.

  $ millrace fork 3f2a --at 2
  $ millrace fork 3f2a --at 2 --edit "1/0=It is 42."
  $ millrace fork 3f2a --question "And in Osaka?"`;
