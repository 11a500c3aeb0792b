import {
  type AnyRun,
  createAgent,
  type Message,
  MillraceError,
  type Model,
  type ModelChunk,
  on,
  type Reply,
  suspend,
  textOf,
  tool,
  type Tool,
  type ToolOutput,
  type ToolContext,
  toolCallsOf,
  type ToolCallBlock,
  toolOutput,
} from 'millrace';
import { assertSuspendsBelow } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { canonicalJson, checkOptions, isFunction, isRecord, parsedJson } from 'millrace/values';
import { concatMap, defer, from, map, type Observable, of } from 'rxjs';

export interface ApproveLaterOptions<Given = unknown> {
  /** Whether a tool call with valid arguments waits; otherwise the tool runs immediately. An error is an error of the tool. Default: always. */
  readonly when?:
    | ((input: Given & Readonly<Record<string, unknown>>, context: ToolContext) => boolean)
    | undefined;
}

/**
 * Makes a tool wait for an approval that comes later: the call ends with reason `suspended`, and the next call of the
 * session brings the decision, in any process. The tool runs when it is approved. Its `suspensions` have the tool call
 * `approve_…` with the model's input, and `{ tool }` as the `request`. The result that decides is `true`, or
 * `{ approved, reason }`; anything else denies, and the model reads the reason. The approvers of the tool decide before the person is
 * asked, and if its input changes afterwards, the person is asked again. Of decisions that several processes bring, the first one counts
 * in a session of `keepSessions` with the journal; the others error with `conflict`. Other sessions belong to one process at a time. Only the program may bring the decision: chat
 * servers refuse one of their clients. It needs a session, `journal()` and
 * `suspendBelow`; a call without them errors with `config` when it starts. Tools that take `extras` are refused with `config`.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, tools: [approveLater(pay)], use: [journal(store.calls), suspendBelow] });
 * const { suspensions = [] } = await sessions(agent).open('ada').call('Pay the miller.');
 * // Later, in any process:
 * await sessions(agent).open('ada').call(toolResults({ [suspensions[0].toolCall.id]: true }));
 * ```
 */
export const approveLater = <Run extends AnyRun>(
  guarded: Tool<unknown, Run>,
  options: ApproveLaterOptions<Run['input']> = {},
): Tool<unknown, Run> => {
  const { name, description, inputSchema, timeoutMs = 0, exclusive = false } = checked(guarded);
  checkOptions('approveLater()', options, { when: isFunction });
  const { when = () => true } = options;
  const ask = tool({
    name: `approve_${name}`.slice(0, 64),
    description: `Asks whether ${name} may run.`,
    input: jsonSchema({ type: 'object' }),
    run: () => suspend({ tool: name }, { from: 'program' }),
  });
  // An agent, so that the decision and the run are steps of a journal: neither happens twice.
  const agent = createAgent({
    name,
    model: script(ask.name, name),
    tools: [ask, asApproved(guarded, ask.name)],
    use: [
      on(
        'postActing',
        map((event) => (event.toolCall.name === name ? { ...event, finalAnswer: true } : event)),
      ),
    ],
  });
  const asking = tool({
    name,
    description,
    // A library of schemas may add methods of its own.
    input: jsonSchema({ ...inputSchema }),
    exclusive,
    // Its calls are recorded, so it can run again.
    idempotent: true,
    callsAgents: true,
    timeoutMs: Math.max(600_000, timeoutMs),
    run: (input, parent) =>
      problems$(guarded, input).pipe(
        concatMap((problems) =>
          problems.length > 0
            ? of(refused(`Invalid arguments:\n${problems.map((it) => `- ${it}`).join('\n')}`))
            : defer(() => {
                const text = JSON.stringify(input);
                const isFree = !checkedFlag(when(input, parent), name) && {
                  model: script(ask.name, name, name),
                };
                return agent.call$(text, { parent, ...isFree });
              }).pipe(map(outputOf)),
        ),
      ),
  });
  const { runs: _, ...asTool } = asking;
  return {
    ...asTool,
    assertReady: (call) => {
      guarded.assertReady?.(call);
      assertSuspendsBelow(call, `approveLater() of the tool '${name}'`);
    },
    deciders: (guarded.deciders ?? []).map((it) => decidingFor(guarded, it)),
  };
};

type Decider = NonNullable<Tool['deciders']>[number];

/** An approver of the guarded tool, which decides before the person is asked. */
const decidingFor = (guarded: Tool, { name, decide$ }: Decider): Decider => ({
  name,
  decide$: (use, checked) => {
    const own = {
      ...use,
      tool: guarded,
      check$: (other: ToolCallBlock) => use.check$(other, guarded),
    };
    return own.check$(checked.toolCall).pipe(
      concatMap((ready) => (ready.status === 'ready' ? decide$(own, ready) : of(ready))),
      map((decided) =>
        decided.status === 'ready' ? { ...checked, toolCall: decided.toolCall } : decided,
      ),
    );
  },
});

/** The guarded tool, which runs with the input that was approved only. Another one goes back to the person. */
const asApproved = (guarded: Tool, ask: string): Tool => ({
  ...guarded,
  deciders: [
    {
      name: 'approveLater',
      decide$: ({ lent: { messages } }, checked) => {
        const { toolCall } = checked;
        const approved = latest(messages, ask)?.input ?? parsedJson(firstText(messages));
        return of(
          canonicalJson(approved) === canonicalJson(toolCall.input)
            ? checked
            : { status: 'refused', toolCall, problems: [], why: changed },
        );
      },
    },
  ],
});

const changed = 'Not run: its input has changed since it was approved.';

const latest = (messages: readonly Message[], name: string): ToolCallBlock | undefined =>
  toolCallsIn(messages).findLast((toolCall) => toolCall.name === name);

const toolCallsIn = (messages: readonly Message[]): readonly ToolCallBlock[] =>
  messages.flatMap((message) => (message.role === 'assistant' ? toolCallsOf(message) : []));

const firstText = (messages: readonly Message[]): string =>
  messages.filter(({ role }) => role === 'user').map(textOf)[0] ?? '';

const checked = (guarded: Tool): Tool => {
  const isTool = isRecord(guarded) && typeof guarded.validation$ === 'function';
  if (!isTool) throw misuse('approveLater() takes a tool.');
  if ((guarded.accepts ?? []).length === 0) return guarded;
  throw misuse(
    `approveLater(): the tool '${guarded.name}' takes extras, which do not outlast a process. Use requireApproval().`,
  );
};

/** Checks what the model wrote before a person reads it. Values that the program sets are checked when the tool runs. */
const problems$ = (guarded: Tool, input: unknown): Observable<readonly string[]> =>
  (guarded.hidden ?? []).length > 0
    ? of([])
    : defer(() => guarded.validation$(input)).pipe(
        map((read) => (read.valid ? [] : read.problems)),
      );

/** Asks, runs the tool if it is approved, and reports its error. `first` is what it calls first. */
const script = (ask: string, run: string, first = ask): Model => ({
  name: 'approval',
  stream$: ({ messages }) => from([...answerTo(messages, ask, run, first), end]),
});

const end: ModelChunk = { type: 'finish', finish: 'stop' };

const answerTo = (
  messages: readonly Message[],
  ask: string,
  run: string,
  first: string,
): readonly ModelChunk[] => {
  const call = (name: string, json: string): readonly ModelChunk[] => [
    { type: 'toolCall', id: name, name, json },
  ];
  const last = messages.at(-1);
  const result = last?.role === 'tool' ? last.content[0] : undefined;
  if (result === undefined) return call(first, firstText(messages));
  const asked = toolCallsIn(messages).find(({ id }) => id === result.toolCallId);
  const input = JSON.stringify(asked?.input);
  const text = textOf(result);
  if (asked?.name === run) {
    return result.isError && text === changed ? call(ask, input) : [{ type: 'text', text }];
  }
  const given = parsedJson(text);
  const { approved, reason } = isRecord(given) ? given : { approved: given };
  if (approved === true && !result.isError) return call(run, input);
  const why = typeof reason === 'string' ? ` ${reason}` : '';
  return [{ type: 'text', text: `Not run: this call to ${run} was not approved.${why}` }];
};

const outputOf = ({ content, reason }: Reply): ToolOutput => {
  if (reason === 'suspended') {
    // A tool that was added to a running call.
    throw misuse('approveLater() needs a session, journal(store) and suspendBelow.');
  }
  const blocks = content.filter(
    (block) => block.type !== 'thinking' && block.type !== 'tool_call' && block.type !== 'vendor',
  );
  return toolOutput({ content: blocks, isError: reason !== 'toolFinal' });
};

/** An async function would ask always. */
const checkedFlag = (given: unknown, name: string): boolean => {
  if (typeof given === 'boolean') return given;
  throw misuse(`approveLater() of the tool '${name}': 'when' must return true or false.`);
};

const refused = (content: string): ToolOutput => toolOutput({ content, isError: true });

const misuse = (message: string): MillraceError => new MillraceError('config', message);
