import { map, type Observable, of } from 'rxjs';
import { consult$, instruction } from '../../phases/consult.js';
import type { Context, PhaseFactory } from '../../seams/layer.js';
import { phase } from '../../seams/phase.js';
import { endInterrupted } from '../../phases/limit.js';
import type { ModelRequest } from '../../models/model.js';
import { ready } from '../../models/answer-tool.js';
import { defined } from '../../values/json.js';
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
  resolvePrompt,
} from './planning-options.js';
import type { LoopCall } from '../../seams/call.js';
import type { CallInfo } from '../../values/reply.js';

/** Before `reasoning`, lets the model analyse the task: shown in all requests as `[Task Analysis]`, never stored. */
export const analyseTask = (options: PlanningOptions = {}): PhaseFactory => {
  checkOptions('analyseTask()', options, planningRules);
  const { name = 'analyseTask' } = options;
  const title = titleOf('Task Analysis', name, 'analyseTask');
  const consultation = { prompt: analyseTaskPrompt, ...defined(options), name, title };
  const analyse: PhaseFactory = (context, call) =>
    phase((run) => (run.iteration > 0 ? of(run) : consultModel$(context, call, run, consultation)));
  return analyse;
};

/** After which turns to reflect: all, those with a failed tool, every n-th, or those that a function selects. */
export type ReflectWhen = 'always' | 'onError' | number | ((run: OpenRun) => boolean);

export interface ReflectOptions extends PlanningOptions {
  /** Default: `always`. */
  readonly when?: ReflectWhen | undefined;
}

/** After `acting`, lets the model reflect on tool results: shown as `[Reflection]` until the next one, never stored. */
export const reflect = (options: ReflectOptions = {}): PhaseFactory => {
  checkOptions('reflect()', options, { ...planningRules, when: isWhen });
  const { when = 'always', name = 'reflect', ...others } = options;
  const title = titleOf('Reflection', name, 'reflect');
  const consultation = { prompt: reflectPrompt, ...defined(others), name, title };
  const isDue = dueWhen(when);
  // Turns that only correct the model have no new results.
  const latest = runKey<string | undefined>(`${name}/results`, undefined);
  const reflectAfter: PhaseFactory = (context, call) =>
    phase((run) => {
      const last = run.messages.at(-1);
      const isCut = context.interruption.current !== undefined;
      if (last?.role !== 'tool' || last.id === latest.of(run) || isCut || !isDue(run))
        return of(run);
      return consultModel$(context, call, latest.set(run, last.id), consultation);
    });
  return reflectAfter;
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

const isWhen: Rule = [
  (value) =>
    value === 'always' ||
    value === 'onError' ||
    typeof value === 'function' ||
    (Number.isInteger(value) && Number(value) >= 1),
  "'always', 'onError', a whole number of at least 1 or a function",
];

interface NamedConsultation extends PlanningOptions {
  readonly name: string;
  readonly prompt: PlanningPrompt;
  readonly title: string;
}

/** Asks the model, and notes the answer for later requests. On failure, warns and continues. */
const consultModel$ = (
  context: Context,
  call: LoopCall,
  run: OpenRun,
  { name, title, prompt, model, maxTokens = 1_000 }: NamedConsultation,
): Observable<Run> => {
  const asked = model === undefined ? call : { ...call, model: ready(model) };
  const position = `${run.iteration}/${name}`;
  const request = consultRequest(context.info, asked, run, position, prompt, maxTokens);
  const warning = (why: string): string =>
    `The phase '${name}' failed, so the call continues without it: ${why}`;
  return consult$(context, asked, run, { phase: name, position, request, warning }).pipe(
    map((answer) => {
      const spent = spend(run, answer.usage, name);
      if (answer.status === 'answered') return note(spent, title, answer.text);
      // Continues even after a veto, unless the call is interrupted.
      return context.interruption.current === undefined ? spent : endInterrupted(spent, context);
    }),
  );
};

/** The conversation as in the loop, so that the provider's cache applies, but without the form of the answer. */
const consultRequest = (
  info: CallInfo,
  { model, request, toolkit: { current: toolkit } }: LoopCall,
  run: OpenRun,
  position: string,
  prompt: PlanningPrompt,
  maxTokens: number,
): ModelRequest => {
  const { outputSchema: _form, stopSequences: _stops, ...options } = request;
  const { messages, iteration } = run;
  const text = resolvePrompt(prompt, { tools: toolkit.declarations, messages, iteration });
  return {
    ...(model.toolsInPrompt === true ? options : withoutTools(options, toolkit, model)),
    maxTokens,
    messages: [...messagesOf(run, info), instruction(info.callId, position, text)],
  };
};
