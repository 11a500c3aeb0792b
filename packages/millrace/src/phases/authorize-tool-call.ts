import { catchError, map, type Observable, tap } from 'rxjs';
import { recover, supervised } from '../flow/gather.js';
import { LazyAbort } from '../flow/lazy-abort.js';
import { andThen, type Eventual, deferWork } from '../flow/eventual.js';
import { interceptorError } from '../flow/stage.js';
import type { OpenRun } from '../run.js';
import type { LoopCall } from '../seams/call.js';
import type { Context } from '../seams/layer.js';
import type { EachHook } from '../seams/hooks.js';
import type { CostBelow } from '../seams/spending.js';
import { outputBelow, spentBelow, toolContext } from '../seams/tool-context.js';
import { cell } from '../step.js';
import type { PlannedCall } from '../tools/batch.js';
import type { CheckedUse, Decider, PendingUse, ReadyUse } from '../tools/types.js';
import { isFatal, misuse } from '../values/errors.js';
import { canonicalJson, isRecord, isTooDeep, parsedJson } from '../values/json.js';
import { frozen, type ToolCallBlock } from '../values/message.js';
import { failedOutput, suspendedOutput, type ToolOutput } from '../values/tool-output.js';
import { noUsage } from '../values/usage.js';
import { checkInput, failedBy, obstacleTo, reportRepair } from './check-tool-call.js';

export interface ToolDecision extends CostBelow {
  /** The tool call with the edits of its deciders. */
  readonly toolCall: ToolCallBlock;
  /** The result, if the tool does not run. */
  readonly answer?: ToolOutput;
  /** Whether it cannot run because of the model's arguments. A denied tool call has not failed. */
  readonly failed: boolean;
  /** The input as the schema transformed it. */
  readonly value?: unknown;
  /** The decisions in order, unless only the validation decided. If the tool does not run, the last one refused it. */
  readonly decidedBy?: readonly DecisionBy[];
}

/** A decision of an interceptor, the validation or an approver. */
export interface DecisionBy {
  readonly name: string;
  readonly edited: boolean;
  /** From 1. Each edit starts a round. */
  readonly round: number;
}

/** A tool call that is answered without running, and has not failed. */
export const answered = (toolCall: ToolCallBlock, answer: ToolOutput): ToolDecision => ({
  toolCall,
  answer,
  failed: false,
  usage: noUsage,
});

/** Decide on every tool call, after the tool's own deciders. */
export const decidersOfCall = cell('call', (): Decider[] => []);

/** Whether more than the validation may decide on all tool calls of a call. */
export const isDecidedOn = ({ hooks, local }: Pick<Context, 'hooks' | 'local'>): boolean =>
  hooks.intercepts('preActing') || local(decidersOfCall).length > 0;

/** The step that decides. */
interface Deciding {
  /** Called with each input, the model's included. */
  readonly onInput: (toolCall: ToolCallBlock) => void;
  /** Called with inputs that all interceptors agree to, and at the end. Only the first one counts. */
  readonly announce: (toolCall: ToolCallBlock) => void;
  /** The result of a tool call that does not run, even if all agree. */
  readonly answer: ToolOutput | undefined;
}

/** A decision in progress. Each decider agrees to the input that it last put out, and to no other one. */
interface Walk {
  readonly toolCall: ToolCallBlock;
  readonly checked: ReadyUse | undefined;
  readonly decisions: readonly Decision[];
}

/** A decision, and the tool call that its decider put out. */
interface Decision extends DecisionBy {
  readonly of: object;
  readonly put: ToolCallBlock;
}

interface Refusal {
  readonly answer: ToolOutput;
  readonly failed: boolean;
}

/** The outcome of one decider: the tool call, edited or not, or a refusal. */
type Decided = Refusal | { readonly toolCall: ToolCallBlock; readonly checked?: ReadyUse };

/** A member of the list, with the decider that it stands for. */
interface Member {
  readonly name: string;
  readonly of: object;
  readonly decideOn: (walk: Walk) => Eventual<Decided>;
}

interface Ended {
  readonly walk: Walk;
  readonly refused?: Refusal;
}

/** The maximum number of edits of a tool call, by all deciders together. */
const maxEdits = 8;

/**
 * Decides on a tool call. The deciders stand in one list: interceptors of `preActing`, the validation, the tool's own
 * approvers, those of layers. The first one that does not agree to the input is asked, until all agree or one refuses:
 * after an edit, those that saw another input are asked again. Emits one decision; problems are reported to the model.
 */
export const authorize = (
  context: Context,
  call: LoopCall,
  run: OpenRun,
  plan: PlannedCall,
  deciding: Deciding,
): Eventual<ToolDecision> => {
  const { hooks, local } = context;
  const { toolkit } = call;
  const { onInput } = deciding;
  const interceptors = hooks.each('preActing').map((it) => intercepting(it, run));
  const validation = validating(context, call, run, plan, deciding);
  const approvers = ({ name }: ToolCallBlock): readonly Decider[] => [
    ...(toolkit.current.find(name)?.deciders ?? []),
    ...local(decidersOfCall),
  ];
  const { toolCall } = plan;
  onInput(toolCall);
  if (interceptors.length === 0 && approvers(toolCall).length === 0) {
    return decideAlone(validation, toolCall);
  }
  const approving = createApproving(context, call, run, plan);
  const list = (walk: Walk): readonly Member[] => [
    ...interceptors,
    validation,
    ...approvers(walk.toolCall).map(approving.member),
  ];
  const onEdit = (from: ToolCallBlock, to: ToolCallBlock, by: string): void => {
    onInput(to);
    hooks.report(run.iteration, { type: 'inputEdited', from, to, by });
  };
  return deferWork(() => walkOn(begun(toolCall), list, onEdit)).pipe(
    // Interceptors may have ended it.
    tap((ended) => deciding.announce(ended.walk.toolCall)),
    approving.ended$,
  );
};

const decideAlone = (validation: Member, toolCall: ToolCallBlock): Eventual<ToolDecision> => {
  const walk = begun(toolCall);
  return andThen(validation.decideOn(walk), (decided) =>
    'answer' in decided
      ? toAuthorization({ walk, refused: decided }, { usage: noUsage })
      : toAuthorization({ walk: { ...walk, ...decided } }, { usage: noUsage }),
  );
};

const begun = (toolCall: ToolCallBlock): Walk => ({
  toolCall,
  checked: undefined,
  decisions: [],
});

/** Asks the first one of the list that does not agree, until all agree or one refuses. */
const walkOn = (
  walk: Walk,
  list: (walk: Walk) => readonly Member[],
  onEdit: (from: ToolCallBlock, to: ToolCallBlock, by: string) => void,
): Eventual<Ended> => {
  const member = list(walk).find((it) => !agrees(walk, it));
  if (member === undefined) return { walk };
  return andThen(member.decideOn(walk), (decided): Eventual<Ended> => {
    const after = stepOn(walk, member, decided);
    if ('answer' in decided) return { walk: after, refused: decided };
    if (after.toolCall !== walk.toolCall) onEdit(walk.toolCall, after.toolCall, member.name);
    return editsOf(after).length > maxEdits
      ? { walk: after, refused: unsettled(after) }
      : walkOn(after, list, onEdit);
  });
};

const agrees = ({ toolCall, decisions }: Walk, { of: decider }: Member): boolean => {
  const last = decisions.findLast((decision) => decision.of === decider);
  return last !== undefined && hasSameInput(last.put, toolCall);
};

const stepOn = (walk: Walk, { name, of: decider }: Member, decided: Decided): Walk => {
  const toolCall = 'answer' in decided ? walk.toolCall : decided.toolCall;
  const isEdited = toolCall !== walk.toolCall;
  const given = 'answer' in decided ? undefined : decided.checked;
  const round = editsOf(walk).length + 1;
  return {
    toolCall,
    checked: given ?? (isEdited ? undefined : walk.checked),
    decisions: [...walk.decisions, { name, edited: isEdited, round, of: decider, put: toolCall }],
  };
};

const editsOf = ({ decisions }: Walk): readonly Decision[] =>
  decisions.filter(({ edited }) => edited);

const unsettled = (walk: Walk): Refusal => {
  const names = editsOf(walk).map(({ name }) => name);
  const again = names.filter((name, index) => names.indexOf(name) < index);
  const who = [...new Set(again.length > 0 ? again : names)].join(', ');
  const why = `Not run: the input of this call to ${walk.toolCall.name} was edited more than ${maxEdits} times, by ${who}.`;
  return { answer: failedOutput(why), failed: false };
};

const toAuthorization = (
  { walk: { toolCall, checked, decisions }, refused }: Ended,
  cost: CostBelow,
): ToolDecision => ({
  toolCall,
  failed: refused?.failed === true,
  ...cost,
  ...(decisions.length > 0 && {
    decidedBy: decisions.map(({ name, edited, round }) => ({ name, edited, round })),
  }),
  ...(refused === undefined ? { value: checked?.value } : { answer: refused.answer }),
});

// ---------------------------------------------------------------- deciders

const hasSameInput = (one: ToolCallBlock, other: ToolCallBlock): boolean =>
  one === other || inputOf(one) === inputOf(other);

/** The input that deciders agree to: the name and the arguments, before the program adds values. */
const inputOf = ({ name, input, invalidInput }: ToolCallBlock): string =>
  canonicalJson({ name, input, invalidInput });

/** The current tool call, or an edit of it as plain JSON: what is compared is what runs. */
const editOf = (toolCall: ToolCallBlock, given: ToolCallBlock): ToolCallBlock => {
  if (given === toolCall) return toolCall;
  if (isTooDeep(given.input)) throw misuse('An edited input must be up to 100 levels deep.');
  if (hasSameInput(given, toolCall)) return toolCall;
  const input = parsedJson(JSON.stringify(given.input));
  return frozen({ ...given, id: toolCall.id, input: isRecord(input) ? input : {} });
};

const intercepting = (interceptor: EachHook<'preActing'>, { iteration }: OpenRun): Member => {
  const { name } = interceptor;
  return {
    name,
    of: interceptor,
    decideOn: ({ toolCall }) =>
      interceptor
        .ask$(iteration, { type: 'preActing', toolCall })
        .pipe(
          map((event): Decided =>
            event === undefined
              ? { answer: failedOutput('Not run: this tool call was rejected.'), failed: false }
              : { toolCall: editedBy(name, toolCall, event.toolCall) },
          ),
        ),
  };
};

/** Unreadable arguments stay so unless they were replaced. */
const editedBy = (name: string, toolCall: ToolCallBlock, given: ToolCallBlock): ToolCallBlock => {
  const { invalidInput: stillInvalid, ...made } = given;
  const { input, invalidInput } = toolCall;
  const isCopy = stillInvalid !== undefined && Object.keys(made.input).length === 0;
  const isBroken = invalidInput !== undefined && (made.input === input || isCopy);
  try {
    return editOf(toolCall, { ...made, ...(isBroken && { invalidInput }) });
  } catch (cause) {
    throw interceptorError(name, cause);
  }
};

const validating = (
  context: Context,
  call: LoopCall,
  run: OpenRun,
  plan: PlannedCall,
  { announce, answer }: Deciding,
): Member => ({
  name: 'validation',
  of: validating,
  decideOn: ({ toolCall }) => {
    announce(toolCall);
    if (answer !== undefined) return { answer, failed: false };
    const tool = call.toolkit.current.find(toolCall.name);
    const { suspends } = toolCall;
    if (tool === undefined && suspends !== undefined) {
      const { request, from = 'program' } = suspends;
      return { answer: suspendedOutput(request, from), failed: false };
    }
    const obstacle = obstacleTo(context, call, run, plan, toolCall, tool);
    if (tool === undefined || obstacle !== undefined) {
      return { answer: failedOutput(obstacle ?? ''), failed: true };
    }
    return recover<Decided>(
      () =>
        andThen(checkInput(context, call, tool, toolCall, plan), (checked): Decided => {
          if (checked.status === 'refused') return no(checked);
          reportRepair(context, run, toolCall, checked.toolCall);
          return { toolCall: editOf(toolCall, checked.toolCall), checked };
        }),
      refusingOnError(toolCall),
    );
  },
});

const no = ({ why, problems }: Extract<CheckedUse, { status: 'refused' }>): Refusal => ({
  answer: failedOutput(why),
  failed: problems.length > 0,
});

const removed = ({ name }: ToolCallBlock): Refusal => ({
  answer: failedOutput(`Not run: the tool ${name} no longer exists.`),
  failed: true,
});

const refusingOnError =
  ({ name }: ToolCallBlock) =>
  (error: unknown): Refusal => {
    if (isFatal(error)) throw error;
    return { answer: failedBy(name, error), failed: true };
  };

/** The approvers of a decision share a tool context, whose signal aborts if the decision is cut. */
const createApproving = (context: Context, call: LoopCall, run: OpenRun, plan: PlannedCall) => {
  const { hooks, local } = context;
  const { toolkit } = call;
  const abort = new LazyAbort();
  const stepId = `${run.iteration}/${plan.index}/intent`;
  const lending = { toolCallId: plan.toolCall.id, stepId, purpose: 'approval' };
  const lent = toolContext(context, call, lending, run, abort);
  const member = (decider: Decider): Member => ({
    name: decider.name,
    of: decider,
    decideOn: (walk) => {
      const { toolCall, checked } = walk;
      const tool = toolkit.current.find(toolCall.name);
      if (tool === undefined || checked === undefined) return removed(toolCall);
      const use: PendingUse = {
        tool,
        lent,
        local,
        round: editsOf(walk).length + 1,
        check$: (other, as = tool) => deferWork(() => checkInput(context, call, as, other, plan)),
        report: (event) => hooks.report(run.iteration, event),
      };
      return recover<Decided>(
        () =>
          decider
            .decide$(use, checked)
            .pipe(
              map((decided): Decided =>
                decided.status === 'ready'
                  ? { toolCall: editOf(toolCall, decided.toolCall) }
                  : no(decided),
              ),
            ),
        refusingOnError(toolCall),
      );
    },
  });
  const ended$ = (walk$: Observable<Ended>): Observable<ToolDecision> =>
    walk$.pipe(
      supervised({ abort }),
      map((it) => {
        outputBelow(lent);
        return toAuthorization(it, spentBelow(lent));
      }),
      catchError((error: unknown) => {
        outputBelow(lent);
        throw error;
      }),
    );
  return { member, ended$ };
};

/** The result of a tool call that an interrupt cut. */
export const interruptedText = 'Interrupted before it finished.';
