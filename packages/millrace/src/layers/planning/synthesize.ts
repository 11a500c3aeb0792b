import { catchError, concatMap, map, type Observable, of } from 'rxjs';
import { deferWork } from '../../flow/eventual.js';
import { alsoEnded } from '../../seams/phase.js';
import type { PhaseFactory, Context } from '../../seams/layer.js';
import { discard, discardUnlessKept } from '../../phases/message-builder.js';
import { isMillraceError, MillraceError } from '../../values/errors.js';
import type { AssistantMessage, Message } from '../../values/message.js';
import { textBlock, textOf, toolCallsOf } from '../../values/message.js';
import type { Model } from '../../models/model.js';
import { ready } from '../../models/answer-tool.js';
import { checkOptions, isFlag, isModel, oneOf, type Rule } from '../../values/options.js';
import { closeRun, type Closing, endInterrupted } from '../../phases/limit.js';
import { citationsIn } from '../retrieval/citations.js';
import { passagesOf, type RetrievedPassage } from '../retrieval/passages.js';
import type { EndedRun, OpenRun, Run } from '../../run.js';
import { addEphemeral, nextIteration, reopen } from '../../run.js';
import { waited$ } from '../../step.js';
import { answerForm } from '../../seams/call.js';
import { jsonSchema } from '../../schema/index.js';
import { toolOutput } from '../../values/tool-output.js';
import { tool } from '../../tools/tool.js';
import type { Tool } from '../../tools/types.js';
import type { PlanningPrompt } from './planning-options.js';
import { citationPrompt, isPrompt, synthesizePrompt, resolvePrompt } from './planning-options.js';
import type { LoopCall } from '../../seams/call.js';

export interface CompleteTaskOptions {
  /** Name of the tool. Default: `complete_task`. */
  readonly name?: string | undefined;
  /** Whether `synthesize` always writes the final answer, even if the tool received one. Default: false. */
  readonly finalize?: boolean | undefined;
}

export const completeTaskName = 'complete_task';

/** The tool that ends a task. Its `answer` is that of the call (`toolFinal`); without it, `synthesize` writes one. */
export const completeTask = (options: CompleteTaskOptions = {}): Tool => {
  checkOptions('completeTask()', options, completeTaskRules);
  const { name = completeTaskName, finalize = false } = options;
  return tool({
    name,
    idempotent: true,
    description: finalize
      ? 'Marks the task as done. Call it once you have everything that the answer needs; you will then be asked to write the answer.'
      : 'Marks the task as done, with the answer. Call it once you have everything that the answer needs.',
    input: jsonSchema({
      type: 'object',
      properties: {
        answer: {
          description: finalize
            ? 'The answer in brief.'
            : 'The complete answer for the user. Without it you are asked to write it.',
        },
      },
    }),
    run: ({ answer }) => {
      const text = answerText(answer);
      return text === '' || finalize
        ? 'The task is marked as done.'
        : toolOutput({ content: text, finalAnswer: true });
    },
  });
};

const answerText = (answer: unknown): string => {
  if (answer === undefined || answer === null) return '';
  return typeof answer === 'string' ? answer.trim() : JSON.stringify(answer);
};

const completeTaskRules: Readonly<Record<keyof CompleteTaskOptions, Rule>> = {
  name: [(value) => typeof value === 'string' && value !== '', 'the name of a tool'],
  finalize: isFlag,
};

export interface SynthesizeOptions {
  /** `complete` (default): if the task was completed without an answer. `always`: replaces every answer. */
  readonly when?: 'complete' | 'always' | undefined;
  /** Name of the completion tool. Default: `complete_task`. */
  readonly completion?: string | undefined;
  /** Replaces the built-in prompt. */
  readonly prompt?: PlanningPrompt | undefined;
  /** The model to ask. Default: that of the call. */
  readonly model?: Model | undefined;
  /** Whether to cite passages. Unknown numbers cause one retry (an iteration), then a `warning`. Default: true. */
  readonly citations?: boolean | undefined;
}

/**
 * Creates a phase that writes the final answer with one request without tools; put it after `acting`. The call ends
 * with reason `answer` and the events of the only closing request. An empty answer counts as a task completed without
 * an answer. If the call has an `output`, an answer of the tool must match it, or is rewritten.
 */
export const synthesize = (options: SynthesizeOptions = {}): PhaseFactory => {
  checkOptions('synthesize()', options, rules);
  const { when = 'complete', completion = completeTaskName } = options;
  const synthesizing: PhaseFactory = (context, own) => {
    const call = options.model === undefined ? own : { ...own, model: ready(options.model) };
    return concatMap((run: Run) => {
      if (run.status === 'open') {
        const isDone =
          run.corrections['emptyAnswer'] !== undefined || isComplete(run.messages, completion);
        return isDone
          ? attempt$(context, call, options, { run: { ...run, feedback: [] }, nth: 0 })
          : of(run);
      }
      if (run.status !== 'answer' && run.status !== 'toolFinal') return of(run);
      if (when === 'always') return rewrite$(context, call, run, options);
      return run.status === 'toolFinal' && isComplete(run.messages, completion)
        ? parsed$(context, call, run, options)
        : of(run);
    });
  };
  return alsoEnded(synthesizing);
};

const isComplete = (messages: readonly Message[], completion: string): boolean => {
  const [caller, results] = messages.slice(-2);
  if (caller?.role !== 'assistant' || results?.role !== 'tool') return false;
  return toolCallsOf(caller).some(
    ({ id, name }) =>
      name === completion &&
      results.content.some(({ toolCallId, isError }) => toolCallId === id && !isError),
  );
};

const parsed$ = (
  context: Context,
  call: LoopCall,
  run: EndedRun,
  options: SynthesizeOptions,
): Observable<Run> => {
  const { required } = context.local(answerForm);
  if (required === undefined || run.output !== undefined) return of(run);
  return required
    .read$(textOf(run.answer))
    .pipe(
      concatMap((read) =>
        read.valid ? of({ ...run, output: read.value }) : rewrite$(context, call, run, options),
      ),
    );
};

/** Turns the answer of the loop into a draft that only the model sees. */
const rewrite$ = (
  context: Context,
  call: LoopCall,
  run: EndedRun,
  options: SynthesizeOptions,
): Observable<Run> => {
  const { answer, status } = run;
  discard(context, run.iteration, answer, 'synthesize', status === 'answer');
  const drafts = textOf(answer).trim() === '' ? [] : [draftOf(answer)];
  return attempt$(context, call, options, { run: reopen(run, ...drafts), nth: 0 });
};

interface Attempt {
  readonly run: OpenRun;
  readonly nth: number;
  /** An earlier answer with wrong citations, used if nothing better comes. */
  readonly fallback?: EndedRun;
}

const attempt$ = (
  context: Context,
  call: LoopCall,
  options: SynthesizeOptions,
  { run, nth, fallback }: Attempt,
): Observable<Run> => {
  const { required } = context.local(answerForm);
  const sources = passagesOf(call);
  const hasIterations = run.iteration < call.limits.maxIterations;
  const retry$ = (from: OpenRun, message: AssistantMessage, why: string, answered?: EndedRun) => {
    discard(context, run.iteration, message, why);
    const withFeedback = addEphemeral(
      nextIteration(from),
      draftOf(message),
      feedbackOn(message, why),
    );
    return attempt$(context, call, options, {
      run: withFeedback,
      nth: nth + 1,
      ...(answered !== undefined && { fallback: answered }),
    });
  };
  const closing = closingOf(context, call, run, options, nth);
  return deferWork(() => closeRun(run, context, call, closing)).pipe(
    concatMap((written) =>
      outputOf$(context, call, written, ({ answer }, why) => {
        const mayRetry = nth < maxOutputCorrections && hasIterations;
        return mayRetry ? retry$(spentBy(run, written), answer, why) : undefined;
      }),
    ),
    map((written) => ({ written, error: undefined })),
    catchError((error: unknown) => of({ written: undefined, error })),
    concatMap(({ written, error }) => {
      if (written === undefined) {
        if (fallback === undefined || isDecision(error)) throw error;
        return of(restoreFallback(context, run, fallback));
      }
      // In JSON, numbers in brackets are not citations.
      const { citations = true } = options;
      const unknownCitations =
        citations && required === undefined ? unknownIn(written, sources) : [];
      if (written.status !== 'answer' || unknownCitations.length === 0) return of(written);
      const why = `The answer cites ${unknownCitations.join(', ')}, but only the passages [1] to [${sources.length}] exist.`;
      if (nth > 0 || !hasIterations) return of(withWarning(context, written, why));
      return retry$(spentBy(run, written), written.answer, why, written);
    }),
  );
};

/** Reads the output of a written answer, if the call has one. An invalid answer is written again, or errors with `invalidResponse`. */
const outputOf$ = (
  context: Context,
  call: LoopCall,
  written: EndedRun,
  again$: (written: EndedRun, why: string) => Observable<Run> | undefined,
): Observable<Run> => {
  const { required } = context.local(answerForm);
  if (required === undefined || written.unusable === undefined) return of(written);
  const { answer } = written;
  return waited$(context, `${answer.id}/output`, required.read$(textOf(answer))).pipe(
    concatMap((read) => {
      if (read === undefined) {
        const ended = endInterrupted(reopen(written), context, answer);
        return of(discardUnlessKept(context, ended, answer));
      }
      if (read.valid) return of({ ...written, output: read.value });
      const why = `Your answer must be JSON that matches the requested schema: ${read.problems.join('; ')}`;
      const rewritten$ = again$(written, why);
      if (rewritten$ !== undefined) return rewritten$;
      throw invalidOutput(call, answer, read.problems);
    }),
  );
};

const maxOutputCorrections = 2;

/** The run before a closing request, with what it has cost. */
const spentBy = (run: OpenRun, { usage, usageByPhase }: Run): OpenRun => ({
  ...run,
  usage,
  usageByPhase,
});

const closingOf = (
  { local }: Context,
  { found, toolkit, model }: LoopCall,
  { messages, iteration }: OpenRun,
  { citations = true, prompt = synthesizePrompt }: SynthesizeOptions,
  nth: number,
): Closing => {
  const isText = local(answerForm).required === undefined;
  const withCitations = citations && passagesOf({ found }).length > 0 && isText;
  const text = resolvePrompt(prompt, { tools: toolkit.current.declarations, messages, iteration });
  return {
    reason: 'answer',
    phase: 'synthesize',
    position: nth === 0 ? 'synthesis' : `synthesis/${nth + 1}`,
    what: 'The task is marked as done.',
    instruction: withCitations ? `${text}\n\n${citationPrompt}` : text,
    unusable: (partial) =>
      new MillraceError('emptyAnswer', `The model '${model.name}' wrote no final answer.`, {
        ...(partial === undefined ? {} : { partial }),
      }),
  };
};

const invalidOutput = (
  { model }: LoopCall,
  message: AssistantMessage,
  problems: readonly string[],
): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `The model '${model.name}' returned no valid output as its final answer: ${problems.join('; ')}`,
    { partial: textOf(message) },
  );

const isDecision = (error: unknown): boolean =>
  isMillraceError(error) && (error.code === 'interceptor' || error.code === 'guardRejected');

/** Numbers without a passage. Larger ones are years and the like. */
const unknownIn = (run: Run, sources: readonly RetrievedPassage[]): readonly string[] =>
  run.status !== 'answer' || sources.length === 0
    ? []
    : citationsIn(textOf(run.answer), sources)
        .unknown.filter(({ number }) => number < 1_000)
        .map(({ number }) => `[${number}]`);

const draftOf = (message: AssistantMessage): AssistantMessage => ({
  ...message,
  id: `${message.id}/draft`,
});

const feedbackOn = ({ id }: AssistantMessage, why: string): Message => ({
  id: `${id}/feedback`,
  role: 'user',
  content: [textBlock(why)],
});

/** The first answer, discarded before, as a new message, because none of it was shown. */
const restoreFallback = (context: Context, run: OpenRun, kept: EndedRun): Run => {
  const { usage, usageByPhase } = run;
  const answer = { ...kept.answer, id: `${kept.answer.id}/kept` };
  return withWarning(
    context,
    { ...kept, answer, usage, usageByPhase, iteration: run.iteration },
    'The answer has wrong citations and could not be rewritten.',
  );
};

const withWarning = ({ hooks }: Context, run: Run, message: string): Run => {
  hooks.report(run.iteration, { type: 'warning', message });
  return run;
};

const rules: Readonly<Record<keyof SynthesizeOptions, Rule>> = {
  when: oneOf('complete', 'always'),
  completion: [(value) => typeof value === 'string' && value !== '', 'the name of a tool'],
  prompt: isPrompt,
  model: isModel,
  citations: isFlag,
};
