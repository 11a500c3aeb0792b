import type { Context } from '../../seams/layer.js';
import { cell } from '../../step.js';
import { isRecord } from '../../values/json.js';
import type { CallInfo } from '../../values/reply.js';
import { isUsage } from '../../values/shape.js';
import { addUsage, noUsage, tokensIn, type Usage } from '../../values/usage.js';
import { countsIn } from './meter.js';

/** The usage of one model by one agent. */
export interface Entry {
  /** The names of the agents, from the outermost to this one, with `/` between them. */
  readonly agent: string;
  readonly model: string;
  readonly usage: Usage;
  /** Part of the usage was reported as something that is no count. */
  readonly isInvalid?: true;
}

type Entries = ReadonlyMap<string, Entry>;

interface Ledger {
  /** The call and its sub-agents. */
  all: Entries;
  /** The sub-agents of each step under way. */
  readonly below: Map<string, Entries>;
}

const ledgers = cell('family', () => new Map<string, Ledger>());

type Where = Pick<Context, 'info' | 'local'>;

const ledgerOf = ({ local }: Pick<Where, 'local'>, { callId }: CallInfo): Ledger => {
  const known = local(ledgers);
  const ledger = known.get(callId) ?? { all: new Map(), below: new Map() };
  known.set(callId, ledger);
  return ledger;
};

/** Removes the ledger of a call that is over. */
export const closeLedger = ({ info, local }: Where): void =>
  void local(ledgers).delete(info.callId);

export const entriesOf = (where: Where): readonly Entry[] => [
  ...ledgerOf(where, where.info).all.values(),
];

/** Charges a call, and all calls above it. */
export const charge = (where: Where, entry: Entry): void => {
  let call: CallInfo | undefined = where.info;
  let step: string | undefined;
  while (call !== undefined) {
    const ledger = ledgerOf(where, call);
    ledger.all = added(ledger.all, entry);
    if (step !== undefined) {
      ledger.below.set(step, added(ledger.below.get(step) ?? new Map<string, Entry>(), entry));
    }
    step = call.parentStep;
    call = call.parent;
  }
};

const added = (entries: Entries, entry: Entry): Entries => {
  const key = JSON.stringify([entry.agent, entry.model]);
  const before = entries.get(key);
  const usage = addUsage(before?.usage ?? noUsage, entry.usage);
  return new Map(entries).set(key, { ...before, ...entry, usage });
};

export const agentPath = ({ agent }: Pick<CallInfo, 'agent'>): string => agent.join('/');

/** The value of a tool step, with the usage of the sub-agents that it called: a replayed step does not call them again. */
export const withUsageBelow = <T>(where: Where, stepId: string, value: T): T => {
  const { below } = ledgerOf(where, where.info);
  const entries = [...(below.get(stepId)?.values() ?? [])];
  below.delete(stepId);
  return entries.length === 0 || !isRecord(value) ? value : { ...value, usageBelow: entries };
};

/**
 * Charges the sub-agents of a replayed tool step, which has charged the agent that called it. Only what it has charged moves, so that the sum stays.
 * Without valid entries, nothing does.
 */
export const chargeBelow = (where: Where, value: unknown): void => {
  // Absent if the call that this one continues has paid for it.
  if (!isRecord(value) || !isRecord(value['below'])) return;
  const { usageBelow } = value;
  const agent = agentPath(where.info);
  for (const entry of Array.isArray(usageBelow) ? usageBelow.filter(isEntry) : []) {
    const { model, usage } = entry;
    const own = entriesOf(where).find((it) => it.agent === agent && it.model === model);
    if (own === undefined || !covers(own.usage, usage)) continue;
    charge(where, { agent, model, usage: negative(usage) });
    charge(where, entry);
  }
};

const isEntry = (value: unknown): value is Entry =>
  isRecord(value) &&
  typeof value['agent'] === 'string' &&
  typeof value['model'] === 'string' &&
  (value['isInvalid'] === undefined || value['isInvalid'] === true) &&
  isUsage(value['usage']) &&
  countsIn(value['usage']).isValid;

const covers = (all: Usage, part: Usage): boolean =>
  all.inputTokens >= part.inputTokens &&
  all.outputTokens >= part.outputTokens &&
  all.cacheReadTokens >= part.cacheReadTokens &&
  all.cacheWriteTokens >= part.cacheWriteTokens;

const negative = (usage: Usage): Usage => ({
  inputTokens: -usage.inputTokens,
  outputTokens: -usage.outputTokens,
  cacheReadTokens: -usage.cacheReadTokens,
  cacheWriteTokens: -usage.cacheWriteTokens,
});

export const hasUsage = ({ usage, isInvalid }: Entry): boolean =>
  isInvalid === true || tokensIn(usage) > 0;
