import type { Observable, OperatorFunction } from 'rxjs';
import { catchError, concatMap, defaultIfEmpty, defer, EMPTY, map, of, takeLast } from 'rxjs';
import { type Agent, defineAgent } from '../../agent.js';
import type { Context } from '../../seams/layer.js';
import { parentToolOf } from '../../seams/call-scope.js';
import type { CallInfo, Reply } from '../../values/reply.js';
import { checkPlaced } from '../../call/call-options.js';
import { runOfCall, concludeRun } from '../../call/answer.js';
import { memberRuns, stepsId, toolRunsBelow } from './member-runs.js';
import { steerings } from '../sessions/steering.js';
import type { Call } from '../../seams/call.js';
import { textFound, contextMessages, notesMessage } from '../../models/prompt.js';
import { type OutputOf, runOf, type StepRun } from '../../call/callable.js';
import type { Composable, OutOf } from '../../operators/compose.js';
import { composed, isStep, runnerOf } from '../../operators/compose.js';
import { supervised } from '../../flow/gather.js';
import { LazyAbort } from '../../flow/lazy-abort.js';
import { contained, failAs } from '../../flow/contained.js';
import { endInterrupted, assistantMessage } from '../../phases/limit.js';
import { MillraceError, misuse } from '../../values/errors.js';
import { type Input, voices } from '../../seams/input.js';
import { isRecord } from '../../values/json.js';
import type { Answer } from '../../seams/layer.js';
import { renamed } from '../../journal/forked-records.js';
import { history } from '../../memories/conversation.js';
import { assertAllReached, assertCallsAgents } from '../../memories/changed-agents.js';
import { addLate, continuing } from '../../memories/suspend.js';
import type { AssistantMessage, Block, ContentBlock, Message } from '../../values/message.js';
import { areBlocks, isContentBlock, plainBlock, textBlock, textOf } from '../../values/message.js';
import type { Rule } from '../../values/options.js';
import { alwaysShown } from '../select-tools.js';
import { toolContext, outputBelow, silent, spentBelow } from '../../seams/tool-context.js';
import { append, end, type EndedRun, hasEnded, type OpenRun, type Run, spend } from '../../run.js';
import type { InputSchema } from '../../values/schema.js';
import { isMessage } from '../../values/shape.js';
import { toolOutput, type ToolOutput } from '../../values/tool-output.js';
import { waited$ } from '../../step.js';
import { tokensIn, type Usage } from '../../values/usage.js';
import { type AgentOptions, agentRules } from '../../call/agent-options.js';
import { loopProgress } from '../../seams/progress.js';
import { withOutput$ } from '../../call/answer-with.js';

/** Options of an agent made of a step: all options without those of the model and its loop. */
export type StepAgentOptions<Output extends InputSchema | undefined = InputSchema | undefined> =
  Omit<AgentOptions<Output>, 'model' | 'instructions' | 'tools'>;

type OutputIn<Out> = Out extends Reply<infer Output> ? Output : undefined;

/**
 * Makes an agent of a step: the step replaces the loop; sessions, events, guards, interrupts, demand and timeouts work
 * as in any agent. The calls of the step are below its own, in its stream, with their paths. The last value of the step
 * is the answer: a complete reply, a message, a string, content blocks, or a list of replies; no value is an
 * `emptyAnswer` error. The last step of a `sequential` and the chosen one of a `route` answer for it: their stream is
 * its stream, and passes the transforms of its `interceptors` too. In a conversation, agents without a session see the
 * earlier messages. An interrupt ends the running calls and starts no others. Steering reaches the agent that answers.
 */
export const asAgent = <
  const AnyStep extends Composable,
  const Output extends InputSchema | undefined = undefined,
>(
  step: AnyStep,
  options: StepAgentOptions<Output> = {},
): Agent<OutputOf<Output, OutputIn<OutOf<AnyStep>>>> => {
  checkPlaced('asAgent()', options, stepAgentRules);
  const { use = [] } = options;
  const own = { ...options, use: [...use, memberRuns] };
  return defineAgent<Output, OutputIn<OutOf<AnyStep>>>('asAgent()', own, runStep(step));
};

const { model: _m, instructions: _i, tools: _t, ...rules } = agentRules;

export const stepAgentRules: Readonly<Record<keyof StepAgentOptions, Rule>> = rules;

const runStep = (step: Composable): ((context: Context) => Answer) => {
  if (!isStep(step)) {
    throw misuse(
      'asAgent() needs a step: an agent, a session, or an operator such as sequential().',
    );
  }
  const run = runnerOf(step);
  return (context) => {
    context.local(voices).hasMembers = true;
    return (call) => answerOf$(run, call, context);
  };
};

const answerOf$ = (run: StepRun<Input>, call: Call, context: Context): Observable<Reply> =>
  defer(() => {
    const openRun = runOfCall(call, context);
    warnOfUnused(call, context);
    if (hasEnded(openRun)) return of(concludeRun(openRun, call, context));
    const before = waitingStep(call, openRun, context);
    return answer$(run, before?.run ?? openRun, before?.call ?? call, context).pipe(
      concatMap(({ answer, usage, later }) => {
        const isCut = context.interruption.current !== undefined;
        if (before !== undefined && !isCut) assertAllReached(context);
        const { taken = [] } = context.local(steerings).get(context.info.callId) ?? {};
        const steered = append(openRun, ...taken);
        const whole = withRunsBelow(steered, usage, context);
        const settled = withStep(whole, before?.toolCallId, later, context);
        if (hasEnded(settled)) return of(concludeRun(settled, call, context));
        return conclude$(settled, answer, context).pipe(
          map((ended) => {
            const reply = concludeRun(ended, call, context);
            const sources = [...(answer?.reply?.sources ?? []), ...(reply.sources ?? [])];
            return sources.length === 0 ? reply : { ...reply, sources };
          }),
        );
      }),
    );
  });

/** Adds the tool calls and the usage of the calls of the steps. */
const withRunsBelow = (run: OpenRun, usage: Usage, context: Context): OpenRun => {
  const whole = { ...run, toolRuns: toolRunsBelow(context) };
  return tokensIn(usage) === 0 ? whole : spend(whole, usage, stepsId);
};

const warnOfUnused = ({ model, options }: Call, { hooks, local }: Context): void => {
  const { timeouts: _, retryBudget: __, ...limits } = options.limits ?? {};
  const unused = [
    ...(model === undefined ? [] : ['model']),
    ...(local(alwaysShown).size === 0 ? [] : ['addTools']),
    ...Object.keys({ ...options.request, ...limits }),
  ];
  if (unused.length === 0) return;
  const message = `An agent made of steps has no loop of its own, so it ignores ${unused.join(', ')}. Set that on the agents in its steps.`;
  hooks.report(0, { type: 'warning', message });
};

const answer$ = (
  run: StepRun<Input>,
  openRun: OpenRun,
  prepared: Call,
  context: Context,
): Observable<{ answer?: StepAnswer | undefined; usage: Usage; later?: ToolOutput | undefined }> =>
  defer(() => {
    const { info, interruption } = context;
    const earlier = earlierMessages(prepared, info.callId);
    const use = earlier.length === 0 ? {} : { use: [history(earlier)] };
    const abort = new LazyAbort();
    const isOver = (): boolean => interruption.current !== undefined;
    const init = { toolCallId: 'step', stepId: stepsId, speaks: true };
    const parent = toolContext(context, prepared, init, openRun, abort, isOver);
    const last$ = defer(() => run(inputOf(prepared.input), { parent, ...use })).pipe(
      contained(),
      failAs('unknown', `The steps of the agent '${nameOf(context)}' failed`),
      takeLast(1),
      map((value) => toAnswer(value, info)),
      defaultIfEmpty(undefined),
      supervised({ abort }),
    );
    return waited$(context, stepsId, last$).pipe(
      // A step that fails because its calls were interrupted or suspended has not failed.
      catchError((error: unknown) => {
        if (isOver() || outputBelow(parent) !== undefined) return EMPTY;
        context.local(loopProgress).run = withRunsBelow(openRun, spentBelow(parent).usage, context);
        throw error;
      }),
      defaultIfEmpty(undefined),
      map((answer) => {
        const output = outputBelow(parent);
        const later = isOver() ? undefined : output;
        return { answer, usage: spentBelow(parent).usage, later };
      }),
    );
  });

/** A call of steps with suspended sub-agents is kept as a tool call, whose late result is the end of the steps. */
const withStep = (
  run: OpenRun,
  before: string | undefined,
  later: ToolOutput | undefined,
  { info }: Context,
): Run => {
  if (before === undefined && later === undefined) return run;
  const { content, suspended } = later ?? toolOutput({ content: 'Done.' });
  const id = before ?? `${info.callId}/${stepsCall}`;
  const toolCall = { type: 'tool_call', id, name: info.agent.at(-1) ?? '', input: {} } as const;
  const own = { type: 'tool_result', toolCallId: id, content, isError: false } as const;
  const result = suspended === undefined ? own : { ...own, suspended };
  const asked: Message = { id, role: 'assistant', content: [toolCall] };
  const answered: Message = { id: `${id}/results`, role: 'tool', content: [result] };
  const settled =
    before === undefined ? append(run, asked, answered) : addLate(run, info, [result]);
  if (suspended === undefined) return settled;
  const suspensions = suspended.below?.waiting ?? [];
  return { ...end(settled, 'suspended', assistantMessage(info, 'suspended', [])), suspensions };
};

const stepsCall = 'steps';

/** The suspended steps that a call continues, with their input and the conversation before it. */
const waitingStep = (call: Call, run: OpenRun, context: Context) => {
  const {
    info: { callId },
    local,
  } = context;
  const [waiting] = local(continuing).tools;
  // Calls below the top replay their steps.
  if (waiting === undefined || parentToolOf(context) !== undefined) return undefined;
  const { id: toolCallId, name } = waiting.toolCall;
  if (!ofSteps.test(toolCallId)) assertCallsAgents(name, undefined);
  const former = toolCallId.slice(0, -stepsCall.length - 1);
  const at = run.messages.findIndex(({ id }) => id === toolCallId);
  const earlier = run.messages.slice(0, at).map((message) => renamed(message, former, callId));
  const messages = earlier.filter(isMessage);
  const isInput = ({ id }: Message): boolean =>
    id.startsWith(`${callId}/input/`) || id.startsWith(`given/${former}/`);
  const before = messages.filter((message) => !isInput(message));
  const own = { ...call, input: messages.filter(isInput), history: before };
  return { toolCallId, run: { ...run, messages }, call: own };
};

const earlierMessages = (call: Call, callId: string): readonly Message[] => [
  ...call.recalled,
  ...call.history.filter(({ id }) => !ofSteps.test(id)),
  ...contextMessages(`${callId}/context`, textFound(call.found)),
  ...notesMessage(`${callId}/notes`, call.notes),
];

/** Passes a plain text on as a string, so functions in steps see the original input. */
const inputOf = (input: readonly Message[]): Input => {
  const [first, ...others] = input;
  if (first === undefined || others.length > 0) return input;
  const isText = first.role === 'user' && first.content.every(({ type }) => type === 'text');
  return isText && first.name === undefined ? textOf(first) : first;
};

const conclude$ = (
  openRun: OpenRun,
  answer: StepAnswer | undefined,
  context: Context,
): Observable<EndedRun> => {
  if (context.interruption.current !== undefined) {
    return of(endInterrupted(openRun, context, answer?.message));
  }
  if (answer === undefined) {
    throw new MillraceError(
      'emptyAnswer',
      `The steps of the agent '${nameOf(context)}' returned no answer.`,
    );
  }
  return endAnswered$(openRun, answer, context);
};

/** Sub-agents do not see that their parent was suspended. */
const ofSteps = /\/steps(?:\/results)?$/;

const nameOf = ({ info }: Pick<Context, 'info'>): string => info.agent.at(-1) ?? '';

interface StepAnswer {
  readonly message: AssistantMessage;
  readonly reply: Reply | undefined;
}

/** Converts the last value of a step to the answer of the call. Throws `invalidState` for other values. */
const toAnswer = (value: unknown, call: CallInfo): StepAnswer => {
  if (isReply(value)) return { message: messageOfReply(value, call), reply: value };
  if (typeof value === 'string' && value !== '') return messageAnswer(call, value);
  if (isMessageLike(value)) return messageAnswer(call, contentOf(value), value.name);
  if (!Array.isArray(value) || value.length === 0) throw unreadable(call);
  const parts: readonly unknown[] = value;
  if (parts.every(isContentBlock)) return messageAnswer(call, parts.map(plainBlock));
  return messageAnswer(call, joinParts(parts.map((part) => blocksOf(part, call))));
};

const messageAnswer = (
  call: CallInfo,
  content: string | readonly ContentBlock[],
  name?: string,
): StepAnswer => ({
  message: { ...assistantMessage(call, 'answer', content), ...(name !== undefined && { name }) },
  reply: undefined,
});

const messageOfReply = ({ id, role, content, name }: Reply, call: CallInfo): AssistantMessage => ({
  id: id.startsWith(`${call.callId}/`) ? id : `${call.callId}/answer`,
  role,
  content: content.filter(({ type }) => type !== 'tool_call'),
  ...(name === undefined ? {} : { name }),
});

interface MessageLike {
  readonly content: readonly Block[];
  readonly name?: string;
}

const isMessageLike = (value: unknown): value is MessageLike =>
  isRecord(value) &&
  (value['role'] === 'assistant' || value['role'] === 'user') &&
  areBlocks(value['content']) &&
  value['content'].some(isContentBlock) &&
  (value['name'] === undefined || typeof value['name'] === 'string');

/** May come from another copy of this package, or from a file. */
const isReply = (value: unknown): value is Reply =>
  isRecord(value) &&
  value['role'] === 'assistant' &&
  typeof value['id'] === 'string' &&
  areBlocks(value['content']) &&
  typeof value['reason'] === 'string' &&
  typeof value['finish'] === 'string' &&
  Array.isArray(value['toolCalls']);

const contentOf = ({ content }: MessageLike): readonly ContentBlock[] =>
  content.filter(isContentBlock).map(plainBlock);

const blocksOf = (part: unknown, call: CallInfo): readonly ContentBlock[] => {
  if (typeof part === 'string') return [textBlock(part)];
  if (!isMessageLike(part) && !isReply(part)) throw unreadable(call);
  const { name } = part;
  const content = contentOf(part);
  return name === undefined ? content : [textBlock(`${name}:\n`), ...content];
};

const joinParts = (parts: readonly (readonly ContentBlock[])[]): readonly ContentBlock[] =>
  joinTexts(
    parts.flatMap((blocks, index) => (index === 0 ? blocks : [textBlock('\n\n'), ...blocks])),
  );

/** Joins texts in a row to one block. */
export const joinTexts = (blocks: readonly ContentBlock[]): readonly ContentBlock[] =>
  blocks.reduce<readonly ContentBlock[]>((merged, block) => {
    const last = merged.at(-1);
    return last?.type === 'text' && block.type === 'text'
      ? [...merged.slice(0, -1), textBlock(last.text + block.text)]
      : [...merged, block];
  }, []);

/** Ends a run with an answer: with the output of its reply, or parsed from its text for a schema. */
const endAnswered$ = (
  run: OpenRun,
  { message, reply }: StepAnswer,
  context: Pick<Context, 'local'>,
): Observable<EndedRun> => {
  const { reason = 'answer', finish = 'stop', suspensions, output } = reply ?? {};
  const ended: EndedRun = {
    ...end(run, reason, message, finish),
    ...(reason === 'suspended' && suspensions !== undefined && { suspensions }),
    ...(output !== undefined && { output }),
  };
  const isRead = reason === 'answer' || output !== undefined;
  return isRead ? withOutput$(ended, context, 'The answer of the steps') : of(ended);
};

const unreadable = ({ agent }: CallInfo): MillraceError =>
  new MillraceError(
    'invalidState',
    `The steps of the agent '${agent.at(-1) ?? ''}' emitted a value that is not an answer. Emit a reply, a message, a string, content blocks, or a list of these.`,
  );

/**
 * Converts what a step emits to one answer with a function: the replies of a `parallel`, the transcript of a `hub`.
 * Emits the result for each value: a reply, a message, a string, or other input. In `asAgent`, no agent of the step
 * streams as the answer. If a model should merge the replies, pass them to an agent: `sequential(parallel(a, b),
 * judge)`. An error of the function is an error of the whole.
 */
export const aggregate = <const AnyStep extends Composable, Out extends Input>(
  step: AnyStep,
  readAnswer: (emitted: OutOf<AnyStep>) => Out,
): OperatorFunction<Input, Out> => {
  if (!isStep(step)) {
    throw misuse('aggregate() needs a step, such as parallel(a, b), whose replies it merges.');
  }
  if (typeof readAnswer !== 'function') {
    throw misuse('aggregate() needs a function that merges what the step emits into one answer.');
  }
  const run = runnerOf(step);
  const emitted = runOf(composed<OutOf<AnyStep>>((input, options) => run(input, silent(options))));
  return composed((input, options) =>
    emitted(input, options).pipe(map((value) => readAnswer(value))),
  );
};
