import type { Observable, OperatorFunction } from 'rxjs';
import { catchError, concatMap, defaultIfEmpty, defer, EMPTY, map, of, takeLast } from 'rxjs';
import { type Agent, type AgentOptions, agentRules, defineAgent } from '../../agent.js';
import type { CallContext } from '../../seams/call-context.js';
import type { CallInfo, Reply } from '../../values/reply.js';
import { checkMoved } from '../../call/call-options.js';
import { begin, concluded, withOutput$ } from '../../call/answer.js';
import type { Call } from '../../seams/call.js';
import { textFound, contextMessages, notesMessage } from '../../models/prompt.js';
import { type OutputOf, runOf, type StepRun } from '../../call/callable.js';
import type { Composable, OutOf } from '../../operators/compose.js';
import { composed, isStep, runnerOf } from '../../operators/compose.js';
import { abortsUnlessComplete, createLazyAbort } from '../../flow/lazy-abort.js';
import { contained, failAs } from '../../flow/contained.js';
import { endInterrupted, assistantMessage } from '../../phases/limit.js';
import { MillraceError, misuse } from '../../values/errors.js';
import type { Input } from '../../seams/input.js';
import { isRecord } from '../../values/json.js';
import type { Answer } from '../../seams/layer.js';
import { history } from '../../memories/conversation.js';
import type { AssistantMessage, Block, ContentBlock, Message } from '../../values/message.js';
import { areBlocks, isContentBlock, plainBlock, textBlock, textOf } from '../../values/message.js';
import type { Rule } from '../../values/options.js';
import { createToolContext, refuseHalted, silent, spentBelow } from '../../seams/tool-context.js';
import { end, type EndedRun, hasEnded, type OpenRun, spend } from '../../run.js';
import type { InputSchema } from '../../values/schema.js';
import { waited$ } from '../../step.js';
import { tokensIn, type Usage } from '../../values/usage.js';

/** What an agent that is made of a step has beside it: all that has not to do with a model and its loop. */
export type StepAgentOptions<Output extends InputSchema | undefined = InputSchema | undefined> =
  Omit<AgentOptions<Output>, 'model' | 'instructions' | 'tools'>;

type OutputIn<Out> = Out extends Reply<infer Output> ? Output : undefined;

/**
 * Makes an agent of a step: its loop is the program that the step is, and all else is as with any agent: sessions, events, guards,
 * interrupts, demand, time-outs. The calls of the step are below its own, in its stream, with their paths. What the step emits last is the
 * answer: a reply with all that it says, a message, a text, content blocks, or a list of replies; nothing is an `emptyAnswer` error. The last step of a `sequential`
 * and the one that a `route` has chosen speak for it: what they stream is streamed as its own, and passes the transforms of its `interceptors` too. In a
 * conversation, agents without a session of their own hear what was said before. An interrupt ends the calls that run, and begins no other.
 */
export const asAgent = <
  const AnyStep extends Composable,
  const Output extends InputSchema | undefined = undefined,
>(
  step: AnyStep,
  options: StepAgentOptions<Output> = {},
): Agent<OutputOf<Output, OutputIn<OutOf<AnyStep>>>> => {
  checkMoved('asAgent()', options, stepAgentRules);
  return defineAgent<Output, OutputIn<OutOf<AnyStep>>>('asAgent()', options, runStep(step));
};

const { model: _m, instructions: _i, tools: _t, ...rules } = agentRules;

export const stepAgentRules: Readonly<Record<keyof StepAgentOptions, Rule>> = rules;

/** Makes the innermost answer of an agent that is made of a step: what the step emits last is the answer. */
const runStep = (step: Composable): ((context: CallContext) => Answer) => {
  if (!isStep(step)) {
    throw misuse(
      'asAgent() needs a step: an agent, a session, or an operator such as sequential().',
    );
  }
  const run = runnerOf(step);
  return (context) => (call) =>
    defer(() => {
      const begun = begin(call, context);
      warnOfIdle(call, context);
      if (hasEnded(begun)) return of(concluded(begun, call, context));
      return answer$(run, begun, call, context).pipe(
        concatMap(({ answer, usage }) => {
          const spent = tokensIn(usage) === 0 ? begun : spend(begun, usage, 'steps');
          return ended$(spent, answer, call, context).pipe(
            map((ended) => {
              const reply = concluded(ended, call, context);
              const sources = [...(answer?.reply?.sources ?? []), ...(reply.sources ?? [])];
              return sources.length === 0 ? reply : { ...reply, sources };
            }),
          );
        }),
      );
    });
};

const warnOfIdle = ({ model, options, pinned }: Call, { hooks }: CallContext): void => {
  const { timeouts: _, retryBudget: __, ...limits } = options.limits ?? {};
  const idle = [
    ...(model === undefined ? [] : ['model']),
    ...(pinned.length === 0 ? [] : ['addTools']),
    ...Object.keys({ ...options.request, ...limits }),
  ];
  if (idle.length === 0) return;
  const message = `An agent made of steps has no loop of its own, so it passes over ${idle.join(', ')}. Give that to the agents in its steps.`;
  hooks.report(0, { type: 'warning', message });
};

const answer$ = (
  run: StepRun<Input>,
  begun: OpenRun,
  asked: Call,
  context: CallContext,
): Observable<{ readonly answer: StepAnswer | undefined; readonly usage: Usage }> =>
  defer(() => {
    const { call, interruption } = context;
    const said = messagesBefore(asked, call.callId);
    const use = said.length === 0 ? {} : { use: [history(said)] };
    const abort = createLazyAbort();
    const isOver = (): boolean => interruption.current !== undefined;
    const lending = { toolUseId: 'step', stepId: 'steps', speaks: true };
    const parent = createToolContext(context, asked.toolkit, lending, begun, abort, isOver);
    const last$ = defer(() => run(inputOf(asked.input), { parent, ...use })).pipe(
      contained(),
      failAs('unknown', `The steps of the agent '${nameOf(context)}' failed`),
      takeLast(1),
      map((value) => answerOf(value, call)),
      defaultIfEmpty(undefined),
      abortsUnlessComplete(abort),
    );
    return waited$(context, 'steps', last$).pipe(
      // A step that cannot go on without what an interrupt has cut is interrupted as well.
      catchError((error: unknown) => {
        if (isOver()) return EMPTY;
        throw error;
      }),
      defaultIfEmpty(undefined),
      map((answer) => {
        refuseHalted(parent);
        return { answer, usage: spentBelow(parent).usage };
      }),
    );
  });

const messagesBefore = (call: Call, callId: string): readonly Message[] => [
  ...call.recalled,
  ...call.history,
  ...contextMessages(`${callId}/context`, textFound(call.found)),
  ...notesMessage(`${callId}/notes`, call.notes),
];

/** A plain text is handed on as one, so that a function which looks at it finds what was asked. */
const inputOf = (input: readonly Message[]): Input => {
  const [first, ...others] = input;
  if (first === undefined || others.length > 0) return input;
  const isText = first.role === 'user' && first.content.every(({ type }) => type === 'text');
  return isText && first.name === undefined ? textOf(first) : first;
};

const ended$ = (
  begun: OpenRun,
  answer: StepAnswer | undefined,
  asked: Call,
  context: CallContext,
): Observable<EndedRun> => {
  if (context.interruption.current !== undefined) {
    return of(endInterrupted(begun, context, answer?.message));
  }
  if (answer === undefined) {
    throw new MillraceError(
      'emptyAnswer',
      `The steps of the agent '${nameOf(context)}' have answered nothing.`,
    );
  }
  return endAnswered$(begun, answer, asked);
};

const nameOf = ({ call }: Pick<CallContext, 'call'>): string => call.agent.at(-1) ?? '';

interface StepAnswer {
  readonly message: AssistantMessage;
  /** The reply that it is, where it is one: it says more than a message. */
  readonly reply: Reply | undefined;
}

/** Reads what a step has emitted last as the answer of the call, or throws an `invalidState` error that says what it may be. */
const answerOf = (value: unknown, call: CallInfo): StepAnswer => {
  if (isReply(value)) return { message: replied(value, call), reply: value };
  if (typeof value === 'string' && value !== '') return said(call, value);
  if (isSaid(value)) return said(call, contentOf(value), value.name);
  if (!Array.isArray(value) || value.length === 0) throw unreadable(call);
  const parts: readonly unknown[] = value;
  if (parts.every(isContentBlock)) return said(call, parts.map(plainBlock));
  return said(call, joined(parts.map((part) => blocksOf(part, call))));
};

const said = (
  call: CallInfo,
  content: string | readonly ContentBlock[],
  name?: string,
): StepAnswer => ({
  message: { ...assistantMessage(call, 'answer', content), ...(name !== undefined && { name }) },
  reply: undefined,
});

const replied = ({ id, role, content, name }: Reply, call: CallInfo): AssistantMessage => ({
  id: id.startsWith(`${call.callId}/`) ? id : `${call.callId}/answer`,
  role,
  content: content.filter(({ type }) => type !== 'tool_use'),
  ...(name === undefined ? {} : { name }),
});

interface Said {
  readonly content: readonly Block[];
  readonly name?: string;
}

const isSaid = (value: unknown): value is Said =>
  isRecord(value) &&
  (value['role'] === 'assistant' || value['role'] === 'user') &&
  areBlocks(value['content']) &&
  value['content'].some(isContentBlock) &&
  (value['name'] === undefined || typeof value['name'] === 'string');

/** Of another copy of this package, or read from a file, it is one as well. */
const isReply = (value: unknown): value is Reply =>
  isRecord(value) &&
  value['role'] === 'assistant' &&
  typeof value['id'] === 'string' &&
  areBlocks(value['content']) &&
  typeof value['reason'] === 'string';

const contentOf = ({ content }: Said): readonly ContentBlock[] =>
  content.filter(isContentBlock).map(plainBlock);

const blocksOf = (part: unknown, call: CallInfo): readonly ContentBlock[] => {
  if (typeof part === 'string') return [textBlock(part)];
  if (!isSaid(part) && !isReply(part)) throw unreadable(call);
  const { name } = part;
  const content = contentOf(part);
  return name === undefined ? content : [textBlock(`${name}:\n`), ...content];
};

/** With a blank line between them, and texts that follow each other in one block. */
const joined = (parts: readonly (readonly ContentBlock[])[]): readonly ContentBlock[] =>
  parts
    .flatMap((blocks, index) => (index === 0 ? blocks : [textBlock('\n\n'), ...blocks]))
    .reduce<readonly ContentBlock[]>((before, block) => {
      const last = before.at(-1);
      return last?.type === 'text' && block.type === 'text'
        ? [...before.slice(0, -1), textBlock(last.text + block.text)]
        : [...before, block];
    }, []);

/** Ends a run with an answer: for the reason of the reply that it is, with its output, or one that is read from the text where the call has a schema. */
const endAnswered$ = (
  run: OpenRun,
  { message, reply }: StepAnswer,
  asked: Call,
): Observable<EndedRun> => {
  const { reason = 'answer', finish = 'stop', suspensions, output } = reply ?? {};
  const ended: EndedRun = {
    ...end(run, reason, message, finish),
    ...(reason === 'suspended' && suspensions !== undefined && { suspensions }),
    ...(output !== undefined && { output }),
  };
  const isRead = reason === 'answer' || output !== undefined;
  return isRead ? withOutput$(ended, asked, 'What the steps have answered') : of(ended);
};

const unreadable = ({ agent }: CallInfo): MillraceError =>
  new MillraceError(
    'invalidState',
    `The steps of the agent '${agent.at(-1) ?? ''}' have emitted something that is no answer. It may be a reply, a message, a text, content blocks, or a list of these.`,
  );

/**
 * Makes one answer of what a step emits, by a function: the replies of a `parallel`, the transcript of a `hub`. Emits what the function makes of each emission: a reply, a message, a text, or what else can
 * be an input. Nobody in the step speaks for an agent that `asAgent` makes of it; whose calls need a model to become one answer go to an agent: `sequential(parallel(a, b), judge)`.
 * What the function throws is an error of the whole.
 */
export const aggregate = <const AnyStep extends Composable, Out extends Input>(
  step: AnyStep,
  toAnswer: (emitted: OutOf<AnyStep>) => Out,
): OperatorFunction<Input, Out> => {
  if (!isStep(step)) {
    throw misuse(
      'aggregate() needs a step, such as parallel(a, b), whose replies it makes one of.',
    );
  }
  if (typeof toAnswer !== 'function') {
    throw misuse('aggregate() needs a function that makes one answer of what the step emits.');
  }
  const run = runnerOf(step);
  const emitted = runOf(composed<OutOf<AnyStep>>((input, options) => run(input, silent(options))));
  return composed((input, options) =>
    emitted(input, options).pipe(map((value) => toAnswer(value))),
  );
};
