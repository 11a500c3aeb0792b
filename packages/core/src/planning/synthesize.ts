import { concatMap, map, type Observable, of } from 'rxjs';
import type { Context } from '../context.js';
import { discard } from '../discard.js';
import { MillraceError } from '../errors.js';
import { type AssistantMessage, type Message, textBlock, textOf, toolUsesOf } from '../message.js';
import type { Model } from '../model.js';
import { ready } from '../models/ready.js';
import { checkOptions, isFlag, isModel, oneOf, type Rule } from '../options.js';
import { alsoEnded, type PhaseFactory } from '../phase.js';
import { close$, type ClosingNeeds } from '../phases/closing.js';
import { citationsIn } from '../retrieval/citations.js';
import {
  addEphemeral,
  type EndedRun,
  nextIteration,
  type OpenRun,
  reopen,
  type Run,
} from '../run.js';
import { completeTaskName } from './complete-task.js';
import { isPrompt } from './planning-options.js';
import {
  citationPrompt,
  type PlanningPrompt,
  synthesizePrompt,
  writtenPrompt,
} from './planning-prompt.js';

/** How the final answer is written. */
export interface SynthesizeOptions {
  /**
   * When: where the model has said that the task is done and has not given the answer (`complete`, the default), or in the place of every answer
   * (`always`).
   */
  readonly when?: 'complete' | 'always';
  /** What the tool is called by which the model says so. Default: `complete_task`. */
  readonly completion?: string;
  /** What the model is told, instead of what it is told by default. */
  readonly prompt?: PlanningPrompt;
  /** Who writes it. Default: the model of the call. */
  readonly model?: Model;
  /**
   * Whether it cites the passages that were retrieved for the call, where there are any. One that cites numbers which do not exist is asked for again
   * once, as an iteration of its own; then a `warning` names them. Default: true.
   */
  readonly citations?: boolean;
}

type Needs = ClosingNeeds & Pick<Context, 'limits' | 'sources'>;

/**
 * Makes a phase, to be put behind `acting`, that writes the final answer with one request without tools. The call ends with it, with reason
 * `answer`. Its events are those of the closing request: it is the one that the call may make.
 */
export const synthesize = (options: SynthesizeOptions = {}): PhaseFactory => {
  checkOptions('synthesize()', options, rules);
  const { when = 'complete', completion = completeTaskName } = options;
  const synthesizing = (given: Needs) => {
    const context = options.model === undefined ? given : { ...given, model: ready(options.model) };
    return concatMap((run: Run) => {
      if (run.status === 'open') {
        return isComplete(run, completion) ? write$(context, run, options) : of(run);
      }
      const isAnswer = run.status === 'answer' || run.status === 'toolFinal';
      return when === 'always' && isAnswer ? rewrite$(context, run, options) : of(run);
    });
  };
  return alsoEnded(synthesizing);
};

/** The tools of the last turn have said that the task is done. */
const isComplete = ({ messages }: OpenRun, completion: string): boolean => {
  const [asked, results] = messages.slice(-2);
  if (asked?.role !== 'assistant' || results?.role !== 'tool') return false;
  return toolUsesOf(asked).some(
    ({ id, name }) =>
      name === completion &&
      results.content.some(({ toolUseId, isError }) => toolUseId === id && !isError),
  );
};

/** What the loop has answered becomes a draft, which the model sees and nobody else keeps. */
const rewrite$ = (context: Needs, run: EndedRun, options: SynthesizeOptions): Observable<Run> => {
  discard(context, run.iteration, run.answer, 'synthesize', run.status === 'answer');
  const { content } = run.answer;
  const draft: AssistantMessage = { ...run.answer, id: `${run.answer.id}/draft`, content };
  return write$(context, reopen(run, ...(textOf(draft).trim() === '' ? [] : [draft])), options);
};

const write$ = (context: Needs, run: OpenRun, options: SynthesizeOptions): Observable<Run> => {
  const { citations = true, prompt = synthesizePrompt } = options;
  const { sources, toolkit, limits } = context;
  const isToCite = citations && sources.length > 0;
  const { messages, iteration } = run;
  const text = writtenPrompt(prompt, { tools: toolkit.declarations, messages, iteration });
  const closing = {
    reason: 'answer',
    phase: 'synthesize',
    what: 'The task is marked as done.',
    instruction: isToCite ? `${text}\n\n${citationPrompt}` : text,
    mute: (partial?: string) =>
      new MillraceError(
        'emptyAnswer',
        `The model '${context.model.name}' wrote no final answer.`,
        partial === undefined ? {} : { partial },
      ),
  } as const;
  const written$ = close$(run, context, { ...closing, position: 'synthesis' });
  if (!isToCite) return written$;
  return written$.pipe(
    concatMap((written) => {
      const unknown = unknownIn(written, sources);
      if (unknown.length === 0) return of(written);
      const why = `The answer cites ${unknown.join(', ')}, and there are only the passages [1] to [${sources.length}].`;
      if (run.iteration >= limits.maxIterations) return of(told(context, written, why));
      if (written.status !== 'open') discard(context, run.iteration, written.answer, why);
      const again = addEphemeral(nextIteration(spent(run, written)), ...feedbackOn(written, why));
      return close$(again, context, { ...closing, position: 'synthesis/again' }).pipe(
        map((better) =>
          unknownIn(better, sources).length === 0 ? better : told(context, better, why),
        ),
      );
    }),
  );
};

/** Marks of passages that there are not. Other numbers in brackets may be years, or anything: only what could count passages is looked at. */
const unknownIn = (run: Run, sources: Context['sources']): readonly string[] =>
  run.status === 'answer'
    ? citationsIn(textOf(run.answer), sources).unknown.map(({ number }) => `[${number}]`)
    : [];

const spent = (run: OpenRun, { usage, usageByPhase }: Run): OpenRun => ({
  ...run,
  usage,
  usageByPhase,
});

const feedbackOn = (written: Run, why: string): readonly Message[] => {
  if (written.status === 'open') return [];
  const { id } = written.answer;
  return [
    { ...written.answer, id: `${id}/draft` },
    { id: `${id}/citations`, role: 'user', content: [textBlock(why)] },
  ];
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
