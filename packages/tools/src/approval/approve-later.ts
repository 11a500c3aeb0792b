import {
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
  toolOutput,
} from '@millrace/core';
import { jsonSchema } from '@millrace/core/schema';
import { checkOptions, isFunction, isRecord, parsedJson } from '@millrace/core/values';
import { concatMap, defer, from, map, type Observable, of } from 'rxjs';

export interface ApproveLaterOptions {
  /** Whether a tool call with valid arguments waits; otherwise the tool runs immediately. An error is an error of the tool. Default: always. */
  readonly when?: (input: Readonly<Record<string, unknown>>, context: ToolContext) => boolean;
}

/**
 * Makes a tool wait for an approval that comes later: the call ends with reason `suspended`, and the next call of the
 * session brings the decision, in any process. The tool runs when it is approved. Its `suspensions` have the tool call
 * `approve_…` with the model's input, and `{ tool }` as the `request`. The result that decides is `true`, or
 * `{ approved, reason }`; anything else denies, and the model reads the reason. It needs a session, `journal()` and
 * `suspendBelow`, otherwise the tool is not run. Tools that take `extras` are refused with `config`.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, tools: [approveLater(pay)], use: [journal(store.calls), suspendBelow] });
 * const { suspensions = [] } = await sessions(agent).open('ada').call('Pay the miller.');
 * // Later, in any process:
 * await sessions(agent).open('ada').call(toolResults({ [suspensions[0].toolCall.id]: true }));
 * ```
 */
export const approveLater = (guarded: Tool, options: ApproveLaterOptions = {}): Tool => {
  const { name, description, inputSchema, timeoutMs = 0, exclusive = false } = checked(guarded);
  checkOptions('approveLater()', options, { when: isFunction });
  const { when = () => true } = options;
  const ask = tool({
    name: `approve_${name}`.slice(0, 64),
    description: `Asks whether ${name} may run.`,
    input: jsonSchema({ type: 'object' }),
    run: () => suspend({ tool: name }),
  });
  // An agent, so that the decision and the run are steps of a journal: neither happens twice.
  const agent = createAgent({
    name,
    model: script(ask.name, name),
    tools: [ask, guarded],
    use: [
      on(
        'postActing',
        map((event) => (event.toolCall.name === name ? { ...event, finalAnswer: true } : event)),
      ),
    ],
  });
  return tool({
    name,
    description,
    // A library of schemas may add methods of its own.
    input: jsonSchema({ ...inputSchema }),
    exclusive,
    // Its calls are recorded, so it can run again.
    idempotent: true,
    timeoutMs: Math.max(600_000, timeoutMs),
    run: (input, parent) =>
      problems$(guarded, input).pipe(
        concatMap((problems) =>
          problems.length > 0
            ? of(refused(`Invalid arguments:\n${problems.map((it) => `- ${it}`).join('\n')}`))
            : agent
                .call$(JSON.stringify(input), {
                  parent,
                  ...(!when(input, parent) && { model: script(name, name) }),
                })
                .pipe(map(outputOf)),
        ),
      ),
  });
};

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

/** Asks, runs the tool if it is approved, and reports its error. It asks nothing if both have the same name. */
const script = (ask: string, run: string): Model => ({
  name: 'approval',
  stream$: ({ messages }) => from([...answerTo(messages, ask, run), end]),
});

const end: ModelChunk = { type: 'finish', finish: 'stop' };

const answerTo = (
  messages: readonly Message[],
  ask: string,
  run: string,
): readonly ModelChunk[] => {
  const input = messages.filter(({ role }) => role === 'user').map(textOf)[0];
  const last = messages.at(-1);
  const result = last?.role === 'tool' ? last.content[0] : undefined;
  if (result === undefined) return [{ type: 'toolCall', id: ask, name: ask, json: input ?? '' }];
  if (result.toolCallId === run) return [{ type: 'text', text: textOf(result) }];
  const given = parsedJson(textOf(result));
  const { approved, reason } = isRecord(given) ? given : { approved: given };
  if (approved === true && !result.isError) {
    return [{ type: 'toolCall', id: run, name: run, json: input ?? '' }];
  }
  const why = typeof reason === 'string' ? ` ${reason}` : '';
  return [{ type: 'text', text: `Not run: this call to ${run} was not approved.${why}` }];
};

const outputOf = ({ content, reason }: Reply): ToolOutput => {
  if (reason === 'suspended') {
    return refused(
      'Not run: it cannot be approved here. approveLater() needs a session, journal() and suspendBelow.',
    );
  }
  const blocks = content.filter(
    (block) => block.type !== 'thinking' && block.type !== 'tool_call' && block.type !== 'vendor',
  );
  return toolOutput({ content: blocks, isError: reason !== 'toolFinal' });
};

const refused = (content: string): ToolOutput => toolOutput({ content, isError: true });

const misuse = (message: string): MillraceError => new MillraceError('config', message);
