import { catchError, isObservable, map, type Observable, of, reduce } from 'rxjs';
import { made$, recovering, settled, thenMap } from '../flow/contained.js';
import { outputBelow, spentBelow } from '../seams/tool-context.js';
import type { Context } from '../seams/context.js';
import { deadline, type Limits, type Timeouts } from '../flow/deadline.js';
import { isFatal, isMillraceError } from '../values/errors.js';
import { hasInexact } from '../values/exact-json.js';
import { type JsonReading, readJson } from '../values/read-json.js';
import { isRecord } from '../values/json.js';
import { abortsUnlessComplete, LazyAbort } from '../flow/lazy-abort.js';
import { frozen, type ToolCallBlock } from '../values/message.js';
import type { OpenRun } from '../run.js';
import { cell } from '../step.js';
import type { Validation } from '../values/schema.js';
import {
  failedOutput,
  suspendedOutput,
  thrownOutput,
  type ToolOutput,
} from '../values/tool-output.js';
import type { Planned } from '../tools/batch.js';
import { inexactOf } from '../tools/inexact.js';
import { written } from '../models/tool-parts.js';
import type { CheckedUse, Decider, PendingUse, ReadyUse, Tool } from '../tools/types.js';
import type { CostBelow } from '../seams/spending.js';
import { noUsage } from '../values/usage.js';

type Needs = Pick<
  Context,
  'toolkit' | 'hooks' | 'scheduler' | 'limits' | 'values' | 'local' | 'toolContext'
>;

export interface Authorization extends CostBelow {
  /** The tool call with the edits of interceptors and deciders. */
  readonly toolCall: ToolCallBlock;
  /** The result, if the tool does not run. */
  readonly answer?: ToolOutput;
  /** Whether it cannot run because of the model's arguments. A denied tool call has not failed. */
  readonly failed: boolean;
  /** The input as the schema transformed it. */
  readonly value?: unknown;
}

/** A tool call that is answered without running, and has not failed. */
export const answered = (toolCall: ToolCallBlock, answer: ToolOutput): Authorization => ({
  toolCall,
  answer,
  failed: false,
  usage: noUsage,
});

/** Decides on a tool call: look-up, validation, deciders. Emits one decision; problems are reported to the model. */
export const authorization$ = (
  context: Needs,
  run: OpenRun,
  original: ToolCallBlock,
  plan: Planned,
): Observable<Authorization> => {
  const { toolkit, limits, hooks, local } = context;
  const { name, invalidInput } = original;
  const isAsPlanned = name === plan.toolCall.name;
  const tool = toolkit.find(name);
  const cannot = (why: string): Observable<Authorization> =>
    of({ ...answered(original, failedOutput(why)), failed: true });
  if (tool === undefined) {
    const { suspends } = original;
    if (suspends !== undefined) return of(answered(original, suspendedOutput(suspends.request)));
    return cannot(unknownTool(name, toolkit.names));
  }
  if (isAsPlanned && plan.tool === undefined) return cannot(notYet(name));
  if (!isAsPlanned && !mayBecome(tool, plan, limits)) return cannot(renamed(name));
  if (invalidInput !== undefined) return cannot(unreadable(context, run, tool, invalidInput));
  const check$ = (toolCall: ToolCallBlock): Observable<CheckedUse> =>
    checked$(context, tool, toolCall, plan);
  const first$ = check$(original).pipe(
    thenMap((checked) => {
      reportRepair(context, run, original, checked.toolCall);
      return checked;
    }),
  );
  const deciders = [...(tool.deciders ?? []), ...local(decidersOfCall)];
  const { iteration } = run;
  const decided$ =
    deciders.length === 0
      ? first$.pipe(thenMap((checked) => decisionOf(checked, { usage: noUsage })))
      : throughDeciders$(first$, deciders, (abort) => {
          const stepId = `${iteration}/${plan.index}/intent`;
          const lending = { toolCallId: original.id, stepId, purpose: deciders[0]?.name };
          return {
            ...{ tool, check$, local },
            lent: context.toolContext(lending, run, abort),
            report: (event) => hooks.report(iteration, event),
          };
        });
  return decided$.pipe(
    recovering<Authorization>((error) => {
      if (isFatal(error)) throw error;
      return { ...answered(original, failedBy(context, run, name, error)), failed: true };
    }),
  );
};

const decisionOf = (checked: CheckedUse, cost: CostBelow): Authorization => {
  const { toolCall } = checked;
  return checked.status === 'ready'
    ? { toolCall, failed: false, ...cost, value: checked.value }
    : { toolCall, answer: failedOutput(checked.why), failed: checked.problems.length > 0, ...cost };
};

/** Decide on every tool call, after the tool's own deciders. */
export const decidersOfCall = cell('call', (): Decider[] => []);

const throughDeciders$ = (
  first$: Observable<CheckedUse>,
  deciders: readonly Decider[],
  pending: (abort: LazyAbort) => PendingUse,
): Observable<Authorization> => {
  const abort = new LazyAbort();
  const use = pending(abort);
  const decided$ = (
    before$: Observable<CheckedUse>,
    { decide$ }: Decider,
  ): Observable<CheckedUse> =>
    before$.pipe(
      thenMap((checked) => (checked.status === 'ready' ? decide$(use, checked) : checked)),
    );
  return deciders.reduce(decided$, first$).pipe(
    abortsUnlessComplete(abort),
    map((checked) => {
      outputBelow(use.lent);
      return decisionOf(checked, spentBelow(use.lent));
    }),
    catchError((error: unknown) => {
      outputBelow(use.lent);
      throw error;
    }),
  );
};

/** The result of a tool call that an interrupt cut. */
export const interrupted = 'Interrupted before it finished.';

/** Validates the input of a tool, within its timeout. */
export const checked$ = (
  { scheduler, limits, values }: Pick<Needs, 'scheduler' | 'limits' | 'values'>,
  tool: Tool,
  toolCall: ToolCallBlock,
  plan: Planned,
): Observable<CheckedUse> => {
  const { name } = tool;
  const extras = name === plan.toolCall.name ? plan.extras : {};
  const read = (validation = noVerdict): CheckedUse =>
    validation.valid
      ? {
          status: 'ready',
          toolCall: repairedCall(toolCall, validation.repaired),
          input: inputOf(validation),
          value: validation.value,
        }
      : { ...validation, status: 'refused', toolCall, why: invalid(name, validation.problems) };
  return made$((owner) => {
    const validation = settled(tool.validation$(toolCall.input, values, extras), owner);
    if (!isObservable(validation)) return read(validation);
    return validation.pipe(
      reduce((first: Validation | undefined, each) => first ?? each, undefined),
      deadline(timeoutOf(tool, limits.timeouts), scheduler, `The tool '${name}'`),
      map(read),
    );
  });
};

export const timeoutOf = (
  { name, timeoutMs }: Tool,
  { tools = {}, toolMs }: Timeouts,
): number | undefined => (Object.hasOwn(tools, name) ? tools[name] : (timeoutMs ?? toolMs));

/** Limits were checked for the tool the model named: an interceptor must not swap in a tool they don't cover. */
const mayBecome = (
  tool: Tool,
  { tool: former }: Planned,
  { maxToolCalls }: Pick<Limits, 'maxToolCalls'>,
): boolean =>
  former === undefined
    ? tool.exclusive !== true && maxToolCalls === Infinity
    : tool.exclusive !== true || former.exclusive === true;

const noVerdict: Validation = { valid: false, problems: ['they have not been checked'] };

const inputOf = ({
  value,
  input = value,
}: Extract<Validation, { valid: true }>): ReadyUse['input'] => (isRecord(input) ? input : {});

const unknownTool = (name: string, names: readonly string[]): string =>
  names.length === 0
    ? `No tool is named '${name}': there are no tools.`
    : `No tool is named '${name}'. The tools are: ${names.join(', ')}.`;

const notYet = (name: string): string =>
  `Not run: the tool ${name} is available from your next step on. Call it again.`;

const renamed = (name: string): string =>
  `Not run: ${name} must be called by its own name. Call it again.`;

const repairedCall = (toolCall: ToolCallBlock, input: unknown): ToolCallBlock =>
  isRecord(input) ? frozen({ ...toolCall, input }) : toolCall;

const reportRepair = (
  { hooks }: Pick<Context, 'hooks'>,
  { iteration }: OpenRun,
  before: ToolCallBlock,
  toolCall: ToolCallBlock,
): void => {
  if (toolCall === before) return;
  const [was, is] = [before, toolCall].map(({ input }) => written(input));
  hooks.report(iteration, { type: 'repaired', before: was ?? '', after: is ?? '', toolCall });
};

/** Why arguments could not be read, for the model. */
const unreadable = (
  { hooks }: Pick<Context, 'hooks'>,
  { iteration }: OpenRun,
  { name, inputSchema }: Tool,
  text: string,
): string => {
  const reading = readJson(text);
  const value = 'problem' in reading ? undefined : reading.value;
  if (!isRecord(value) || !hasInexact(value)) return notAnObject(name, text, reading);
  const { problems, warnings } = inexactOf(value, inputSchema, `The tool '${name}'`);
  for (const message of warnings) hooks.report(iteration, { type: 'warning', message });
  return invalid(name, problems);
};

const notAnObject = (name: string, text: string, reading: JsonReading): string => {
  const why = 'problem' in reading ? ` (${reading.problem.slice(0, -1)})` : '';
  return `The arguments for ${name} are not a JSON object: ${text.slice(0, 200)}${why}`;
};

const invalid = (name: string, problems: readonly string[]): string =>
  `The arguments for ${name} are invalid:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;

/** The result for an error of a tool. Errors in the program's configuration are not shown to the model. */
export const failedBy = (
  { hooks }: Pick<Context, 'hooks'>,
  { iteration }: OpenRun,
  name: string,
  error: unknown,
): ToolOutput => {
  if (!isMillraceError(error) || error.code !== 'config') {
    return thrownOutput(error);
  }
  hooks.report(iteration, { type: 'handlerError', of: 'tool', name, error });
  return thrownOutput(error, 'Failed: the tool is not configured. Continue without it.');
};
