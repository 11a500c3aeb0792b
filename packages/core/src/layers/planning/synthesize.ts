import { catchError, concatMap, map, type Observable, of } from 'rxjs';
import { alsoEnded, everyRun, type PhaseFactory } from '../../seams/phase.js';
import type { Context } from '../../seams/context.js';
import { discard } from '../../phases/message-builder.js';
import { isMillraceError, MillraceError } from '../../values/errors.js';
import type { AssistantMessage, Message } from '../../values/message.js';
import { textBlock, textOf, toolUsesOf } from '../../values/message.js';
import type { Model } from '../../models/model.js';
import { ready } from '../../models/answer-tool.js';
import { checkOptions, isFlag, isModel, oneOf, type Rule } from '../../values/options.js';
import { close$, type Closing, type ClosingNeeds } from '../../phases/limit.js';
import { citationsIn } from '../retrieval/citations.js';
import { passagesOf } from '../retrieval/numbered.js';
import type { RetrievedPassage } from '../retrieval/retriever.js';
import type { EndedRun, OpenRun, Run } from '../../run.js';
import { addEphemeral, nextIteration, reopen } from '../../run.js';
import { jsonSchema } from '../../schema/index.js';
import { toolOutput } from '../../values/tool-output.js';
import { tool } from '../../tools/tool.js';
import type { Tool } from '../../tools/types.js';
import type { PlanningPrompt } from './planning-options.js';
import { citationPrompt, isPrompt, synthesizePrompt, writtenPrompt } from './planning-options.js';

/** How a task is completed. */
export interface CompleteTaskOptions {
  /** What the model calls the tool. Default: `complete_task`. */
  readonly name?: string;
  /** The final answer is always written by `synthesize`, also where the tool was given one. Default: false. */
  readonly finalize?: boolean;
}

/** What the tool is called, unless it is told otherwise. */
export const completeTaskName = 'complete_task';

/** Makes the tool by which the model says that the task is done. The `answer` that it gives is the answer of the call, with reason `toolFinal`; where it gives none, or with `finalize`, the phase `synthesize` writes one. */
export const completeTask = (options: CompleteTaskOptions = {}): Tool => {
  checkOptions('completeTask()', options, completeTaskRules);
  const { name = completeTaskName, finalize = false } = options;
  return tool({
    name,
    idempotent: true,
    description: finalize
      ? 'Says that the task is done, as soon as all that the answer needs has been found. You are then asked to write it.'
      : 'Says that the task is done, as soon as all that the answer needs has been found, and gives the answer.',
    input: jsonSchema({
      type: 'object',
      properties: {
        answer: {
          description: finalize
            ? 'What the answer is, in short.'
            : 'The whole answer, for whoever has asked. Without it you are asked to write it.',
        },
      },
    }),
    run: ({ answer }) => {
      const text = written(answer);
      return text === '' || finalize
        ? 'The task is marked as done.'
        : toolOutput({ content: text, finalAnswer: true });
    },
  });
};

const written = (answer: unknown): string => {
  if (answer === undefined || answer === null) return '';
  return typeof answer === 'string' ? answer.trim() : JSON.stringify(answer);
};

const completeTaskRules: Readonly<Record<keyof CompleteTaskOptions, Rule>> = {
  name: [(value) => typeof value === 'string' && value !== '', 'the name of a tool'],
  finalize: isFlag,
};

/** How the final answer is written. */
export interface SynthesizeOptions {
  /** When: where the model has said that the task is done and has not given the answer (`complete`, the default), or in the place of every answer (`always`). */
  readonly when?: 'complete' | 'always';
  /** What the tool is called by which the model says so. Default: `complete_task`. */
  readonly completion?: string;
  /** What the model is told, instead of what it is told by default. */
  readonly prompt?: PlanningPrompt;
  /** Who writes it. Default: the model of the call. */
  readonly model?: Model;
  /** Whether it cites the passages that were retrieved for the call, where there are any. One that cites numbers which do not exist is asked for again once, as an iteration of its own; then a `warning` names them. Default: true. */
  readonly citations?: boolean;
}

type Needs = ClosingNeeds & Pick<Context, 'limits' | 'found'>;

/**
 * Makes a phase, to be put behind `acting`, that writes the final answer with one request without tools. The call ends with it, with reason
 * `answer`. Its events are those of the closing request: it is the one that the call may make. An answer of nothing counts as a task that is done without one. Where the
 * call has an `output`, the answer of the completion tool has to have its form as well, or is written anew.
 */
export const synthesize = (options: SynthesizeOptions = {}): PhaseFactory => {
  checkOptions('synthesize()', options, rules);
  const { when = 'complete', completion = completeTaskName } = options;
  const synthesizing = (given: Needs) => {
    const context = options.model === undefined ? given : { ...given, model: ready(options.model) };
    return everyRun((run) => {
      if (run.status === 'open') {
        const isDone =
          run.corrections.emptyAnswer !== undefined || isComplete(run.messages, completion);
        return isDone ? try$(context, options, { run: { ...run, feedback: [] }, nth: 0 }) : of(run);
      }
      if (run.status !== 'answer' && run.status !== 'toolFinal') return of(run);
      if (when === 'always') return rewrite$(context, run, options);
      return run.status === 'toolFinal' && isComplete(run.messages, completion)
        ? formed$(context, run, options)
        : of(run);
    });
  };
  return alsoEnded(synthesizing);
};

const isComplete = (messages: readonly Message[], completion: string): boolean => {
  const [asked, results] = messages.slice(-2);
  if (asked?.role !== 'assistant' || results?.role !== 'tool') return false;
  return toolUsesOf(asked).some(
    ({ id, name }) =>
      name === completion &&
      results.content.some(({ toolUseId, isError }) => toolUseId === id && !isError),
  );
};

const formed$ = (context: Needs, run: EndedRun, options: SynthesizeOptions): Observable<Run> => {
  const { output } = context;
  if (output === undefined || run.output !== undefined) return of(run);
  return output
    .read$(textOf(run.answer))
    .pipe(
      concatMap((read) =>
        read.valid ? of({ ...run, output: read.value }) : rewrite$(context, run, options),
      ),
    );
};

/** What the loop has answered becomes a draft, which the model sees and nobody else keeps. */
const rewrite$ = (context: Needs, run: EndedRun, options: SynthesizeOptions): Observable<Run> => {
  const { answer, status } = run;
  discard(context, run.iteration, answer, 'synthesize', status === 'answer');
  const drafts = textOf(answer).trim() === '' ? [] : [draftOf(answer)];
  return try$(context, options, { run: reopen(run, ...drafts), nth: 0 });
};

interface Try {
  readonly run: OpenRun;
  /** How often the answer has been asked for before. */
  readonly nth: number;
  /** An answer that cites what is not there: better than none. */
  readonly kept?: EndedRun;
}

const try$ = (
  context: Needs,
  options: SynthesizeOptions,
  { run, nth, kept }: Try,
): Observable<Run> => {
  const { output, limits } = context;
  const sources = passagesOf(context);
  const hasIterations = run.iteration < limits.maxIterations;
  const again$ = (from: OpenRun, message: AssistantMessage, why: string, first?: EndedRun) => {
    discard(context, run.iteration, message, why);
    const told = addEphemeral(nextIteration(from), draftOf(message), feedbackOn(message, why));
    return try$(context, options, {
      run: told,
      nth: nth + 1,
      ...(first !== undefined && { kept: first }),
    });
  };
  const closing = closingOf(context, run, options, nth);
  return close$(run, context, {
    ...closing,
    onInvalid$: (from, message, problems) => {
      const why = `Your answer must be JSON of the schema that was asked for: ${problems.join('; ')}`;
      if (nth < maxOutputCorrections && hasIterations) return again$(from, message, why);
      throw invalidOutput(context, message, problems);
    },
  }).pipe(
    map((written) => ({ written, error: undefined })),
    catchError((error: unknown) => of({ written: undefined, error })),
    concatMap(({ written, error }) => {
      if (written === undefined) {
        if (kept === undefined || isDecision(error)) throw error;
        return of(restored(context, run, kept));
      }
      // Numbers in brackets are no citations in JSON.
      const { citations = true } = options;
      const cites = citations && output === undefined ? unknownIn(written, sources) : [];
      if (written.status !== 'answer' || cites.length === 0) return of(written);
      const why = `The answer cites ${cites.join(', ')}, and there are only the passages [1] to [${sources.length}].`;
      if (nth > 0 || !hasIterations) return of(told(context, written, why));
      const from = { ...run, usage: written.usage, usageByPhase: written.usageByPhase };
      return again$(from, written.answer, why, written);
    }),
  );
};

/** Answers in a row that may have another form than was asked for. */
const maxOutputCorrections = 2;

const closingOf = (
  { found, toolkit, model, output }: Needs,
  { messages, iteration }: OpenRun,
  { citations = true, prompt = synthesizePrompt }: SynthesizeOptions,
  nth: number,
): Closing => {
  const isToCite = citations && passagesOf({ found }).length > 0 && output === undefined;
  const text = writtenPrompt(prompt, { tools: toolkit.declarations, messages, iteration });
  return {
    reason: 'answer',
    phase: 'synthesize',
    position: nth === 0 ? 'synthesis' : `synthesis/${nth + 1}`,
    what: 'The task is marked as done.',
    instruction: isToCite ? `${text}\n\n${citationPrompt}` : text,
    mute: (partial) =>
      new MillraceError('emptyAnswer', `The model '${model.name}' wrote no final answer.`, {
        ...(partial === undefined ? {} : { partial }),
      }),
  };
};

const invalidOutput = (
  { model }: Needs,
  message: AssistantMessage,
  problems: readonly string[],
): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `The model '${model.name}' gave no valid output as its final answer: ${problems.join('; ')}`,
    { partial: textOf(message) },
  );

const isDecision = (error: unknown): boolean =>
  isMillraceError(error) && (error.code === 'interceptor' || error.code === 'guardRejected');

/** Numbers that no passage has. Longer ones are years, and the like. */
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

/** The first answer, which has been discarded: as a message of its own, for nothing of it has been shown. */
const restored = (context: Needs, run: OpenRun, kept: EndedRun): Run => {
  const { usage, usageByPhase } = run;
  const answer = { ...kept.answer, id: `${kept.answer.id}/kept` };
  return told(
    context,
    { ...kept, answer, usage, usageByPhase, iteration: run.iteration },
    'The answer cites what is not there, and could not be written anew.',
  );
};

const told = ({ hooks }: Needs, run: Run, message: string): Run => {
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
