import { map, type Observable, of } from 'rxjs';
import { consult$, type ConsultNeeds, instruction } from '../../phases/consult.js';
import type { Context } from '../../seams/context.js';
import { phase, type PhaseFactory } from '../../seams/phase.js';
import { endInterrupted } from '../../phases/limit.js';
import type { ModelRequest } from '../../models/model.js';
import { ready } from '../../models/answer-tool.js';
import { checkOptions, type Rule } from '../../values/options.js';
import { withoutTools } from '../../models/request-options.js';
import { messagesOf, note, type OpenRun, type Run, runKey, spend } from '../../run.js';
import {
  analyseTaskPrompt,
  type PlanningOptions,
  type PlanningPrompt,
  planningRules,
  reflectPrompt,
  titleOf,
  writtenPrompt,
} from './planning-options.js';

/** Makes a phase, to be put before `reasoning`, that lets the model look at the task before the first turn: one request. What it says is shown in every request of the call as `[Task Analysis]`, and never stored. */
export const analyseTask = (options: PlanningOptions = {}): PhaseFactory => {
  checkOptions('analyseTask()', options, planningRules);
  const { name = 'analyseTask' } = options;
  const title = titleOf('Task Analysis', name, 'analyseTask');
  const aside = { prompt: analyseTaskPrompt, ...options, name, title };
  const analysing = (context: AskNeeds) =>
    phase((run) => (run.iteration > 0 ? of(run) : askBeside$(context, run, aside)));
  return analysing;
};

/** Behind which turns the model reflects: all, those in which a tool has failed, every so many, or those that a function picks. */
export type ReflectWhen = 'always' | 'onError' | number | ((run: OpenRun) => boolean);

/** How the model reflects. */
export interface ReflectOptions extends PlanningOptions {
  /** Default: `always`. */
  readonly when?: ReflectWhen;
}

/** Makes a phase, to be put behind `acting`, that lets the model think about what its tools have given: one request each time. What it says is shown as `[Reflection]` until it reflects again, and never stored. A turn without tools is passed over. */
export const reflect = (options: ReflectOptions = {}): PhaseFactory => {
  checkOptions('reflect()', options, { ...planningRules, when: isWhen });
  const { when = 'always', name = 'reflect', ...asked } = options;
  const title = titleOf('Reflection', name, 'reflect');
  const aside = { prompt: reflectPrompt, ...asked, name, title };
  const isDue = dueWhen(when);
  // A turn that only corrects the model brings no new results.
  const latest = runKey<string | undefined>(`${name}/results`, undefined);
  const reflecting = (context: AskNeeds) =>
    phase((run) => {
      const last = run.messages.at(-1);
      const isCut = context.interruption.current !== undefined;
      if (last?.role !== 'tool' || last.id === latest.of(run) || isCut || !isDue(run))
        return of(run);
      return askBeside$(context, latest.set(run, last.id), aside);
    });
  return reflecting;
};

const dueWhen = (when: ReflectWhen): ((run: OpenRun) => boolean) => {
  if (typeof when === 'function') return when;
  if (typeof when === 'number') return ({ iteration }) => iteration % when === 0;
  return when === 'always' ? () => true : hasFailed;
};

const hasFailed = ({ messages }: OpenRun): boolean => {
  const last = messages.at(-1);
  return last?.role === 'tool' && last.content.some(({ isError }) => isError);
};

export const isWhen: Rule = [
  (value) =>
    value === 'always' ||
    value === 'onError' ||
    typeof value === 'function' ||
    (Number.isInteger(value) && Number(value) >= 1),
  "'always', 'onError', a whole number of at least 1 or a function",
];

type AskNeeds = ConsultNeeds & Pick<Context, 'interruption' | 'request' | 'toolkit'>;

interface Aside extends PlanningOptions {
  readonly name: string;
  readonly prompt: PlanningPrompt;
  /** What later requests show the answer under. */
  readonly title: string;
}

/** Shows the model the conversation and tells it what to think about; what it says is noted for the requests to come. A failure is a `warning`, and the run goes on without. */
const askBeside$ = (
  context: AskNeeds,
  run: OpenRun,
  { name, title, prompt, model, maxTokens = 1_000 }: Aside,
): Observable<Run> => {
  const asked = model === undefined ? context : { ...context, model: ready(model) };
  const position = `${run.iteration}/${name}`;
  const request = besideRequest(asked, run, position, prompt, maxTokens);
  const warning = (why: string): string =>
    `The phase '${name}' came to nothing, and the call goes on without: ${why}`;
  return consult$(asked, run, { phase: name, position, request, warning }).pipe(
    map((said) => {
      const spent = spend(run, said.usage, name);
      if (said.status === 'answered') return note(spent, title, said.text);
      // Also where an interceptor would not have it: the call goes on, unless it is interrupted.
      return context.interruption.current === undefined ? spent : endInterrupted(spent, context);
    }),
  );
};

/** The conversation as the model knows it, so that what its provider has cached holds; the form of the answer is not for what is said beside the loop. */
const besideRequest = (
  { call, model, request, toolkit }: AskNeeds,
  run: OpenRun,
  position: string,
  prompt: PlanningPrompt,
  maxTokens: number,
): ModelRequest => {
  const { outputSchema: _form, stopSequences: _stops, ...options } = request;
  const { messages, iteration } = run;
  const text = writtenPrompt(prompt, { tools: toolkit.declarations, messages, iteration });
  return {
    ...(model.toolsInPrompt === true ? options : withoutTools(options, toolkit, model)),
    maxTokens,
    messages: [...messagesOf(run, call), instruction(call.callId, position, text)],
  };
};
