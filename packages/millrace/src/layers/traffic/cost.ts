import { map, tap } from 'rxjs';
import { layerPlaces } from '../../seams/layer-places.js';
import type { Context, Layer } from '../../seams/layer.js';
import { replayedSteps, type Spending, watchingSpending } from '../../seams/spending.js';
import { cell } from '../../step.js';
import { misuse } from '../../values/errors.js';
import { isRecord } from '../../values/json.js';
import { checkOptions, isObject, type Rule } from '../../values/options.js';
import type { AnyRun, CallInfo } from '../../values/reply.js';
import { addUsage, countsIn, noUsage, tokensIn, type Usage } from '../../values/usage.js';
import { withMeter } from './meter.js';
import { checkPrices, moneyFor, priceOf, type PriceTable } from './prices.js';
import { isUsage } from '../../values/shape.js';

/** Prices, as they were on a day. Plain data, for example of a JSON file: prices change, so Millrace has none of its own. */
export interface PriceList {
  /** Such as `USD`. */
  readonly currency: string;
  /** When the prices were looked up: `2026-11-30`. */
  readonly date: string;
  readonly prices: PriceTable;
}

/** The usage of a model or an agent, and what it costs. */
export interface CostShare {
  readonly usage: Usage;
  /** Absent if it is unknown, which is not 0. */
  readonly total?: number;
  /** The part that is known. */
  readonly atLeast: number;
  /** Why the total is unknown: a model has no price, or has reported usage that is no number of tokens. */
  readonly unknown?: 'price' | 'usage';
}

/** The cost of a call, including its sub-agents, failed and cancelled requests, and those before a resume. Requests whose usage is not reported count nothing. */
export interface Cost extends Pick<PriceList, 'currency' | 'date'>, CostShare {
  /** By name of the model that answered. */
  readonly models: Readonly<Record<string, CostShare>>;
  /** By path of names, such as `assistant` and `assistant/researcher`, each without the agents below. */
  readonly agents: Readonly<Record<string, CostShare>>;
}

declare module '../../values/reply.js' {
  // Merged declarations need the same type parameters.
  // eslint-disable-next-line @typescript-eslint/no-unused-vars
  interface Reply<Output = unknown, Run extends AnyRun = AnyRun> {
    /** The cost of the call, with the layer `cost`. */
    readonly cost?: Cost;
  }
}

declare module '../../events.js' {
  interface Events {
    /** The cost of a call that fails, before its `error`. The cost of other calls is in their reply. */
    readonly failedCallCost: { readonly cost: Cost };
  }
}

/**
 * Adds `cost` to the reply of each call and of its sub-agents, which share the list of the outermost one. A request is charged to the model that
 * answered. A resumed call includes what its replayed steps have cost, once. Throws `config` if the list is invalid.
 *
 * @example
 * ```ts
 * import { createAgent } from 'millrace';
 * import { scriptedModel, text } from 'millrace/testing';
 * import { cost } from 'millrace/traffic';
 *
 * const used = { type: 'usage', usage: { inputTokens: 2_000, outputTokens: 500 } } as const;
 * const model = scriptedModel([text('Well.'), used]);
 * const prices = { scripted: { input: 0.25, output: 2 } }; // for a million tokens
 * const agent = createAgent({ model, use: [cost({ currency: 'USD', date: '2026-11-30', prices })] });
 * console.log((await agent.call('How are you?')).cost?.total);
 * ```
 *
 * ```text
 * 0.0015
 * ```
 */
export const cost = (given: PriceList): readonly Layer[] => {
  const list = readPriceList(given, 'cost()');
  return [
    {
      name: 'cost',
      priority: layerPlaces.budget,
      inherit: true,
      single: true,
      call: (context) => (next) => (call) => {
        context.local(asked).model = call.model?.name ?? '';
        context.whenOver(() => closeLedger(context));
        return next(call);
      },
      model: (context) => (model) =>
        withMeter(model, (usage, name, isValid) =>
          charge(context, entryOf(context, name, usage, isValid)),
        ),
      step: (context) => (next) => {
        const replayed = context.local(replayedSteps);
        const perform = watchingSpending(next, context, {
          // The model layer counts requests, including cancelled ones.
          live: () => undefined,
          replayed: (spending) => chargeReplayed(context, spending),
        });
        return (step) =>
          step.kind === 'tool'
            ? perform(step).pipe(
                tap((value) => replayed.has(step.id) && chargeBelow(context, value)),
              )
            : perform(step);
      },
    },
    {
      // Within the journal, so that it stores the reply with its cost, and tool results with what is below.
      name: 'costOfReply',
      priority: layerPlaces.journal + 1,
      inherit: true,
      single: true,
      call: (context) => (next) => (call) =>
        next(call).pipe(
          map((reply) => withCost(context, list, reply)),
          tap({
            error: () =>
              context.hooks.report(context.hooks.iteration(), {
                type: 'failedCallCost',
                cost: costOf(list, entriesOf(context)),
              }),
          }),
        ),
      step: (context) => (next) => (step) => {
        if (step.kind === 'tool') {
          return next(step).pipe(map((value) => withUsageBelow(context, step.id, value)));
        }
        // A call that has ended gets its recorded reply back, without its steps.
        return step.kind === 'reply'
          ? next(step).pipe(map((value) => withCost(context, list, value)))
          : next(step);
      },
    },
  ];
};

const withCost = <T>(context: Context, list: PriceList, reply: T): T =>
  isRecord(reply) ? { ...reply, cost: costOf(list, entriesOf(context)) } : reply;

/** The name of the call's own model, for recorded messages that do not name theirs. */
const asked = cell('call', () => ({ model: '' }));

const entryOf = (
  { info }: Pick<Context, 'info'>,
  model: string,
  usage: Usage,
  isValid: boolean,
): Entry => ({ agent: agentPath(info), model, usage, ...(!isValid && { isInvalid: true }) });

const chargeReplayed = (context: Context, { models }: Spending): void => {
  for (const [name, given] of Object.entries(models)) {
    const { usage, isValid } = countsIn(given);
    charge(context, entryOf(context, name || context.local(asked).model, usage, isValid));
  }
};

/** The cost of entries. A sum is made of tokens first, so that requests add no rounding errors. */
const costOf = ({ currency, date, prices }: PriceList, all: readonly Entry[]): Cost => {
  const entries = all.filter(hasUsage);
  return {
    currency,
    date,
    ...shareOf(prices, entries),
    models: sharesBy('model', prices, entries),
    agents: sharesBy('agent', prices, entries),
  };
};

const sharesBy = (
  key: 'model' | 'agent',
  prices: PriceTable,
  entries: readonly Entry[],
): Readonly<Record<string, CostShare>> =>
  Object.fromEntries(
    [...new Set(entries.map((entry) => entry[key]))].map((name) => [
      name,
      shareOf(
        prices,
        entries.filter((entry) => entry[key] === name),
      ),
    ]),
  );

const shareOf = (prices: PriceTable, entries: readonly Entry[]): CostShare => {
  const usage = entries.reduce((sum, entry) => addUsage(sum, entry.usage), noUsage);
  const parts = entries.map((entry) => ({ entry, price: priceOf(prices, entry.model) }));
  const atLeast = rounded(
    parts.reduce((sum, { entry, price }) => sum + (price ? moneyFor(entry.usage, price) : 0), 0),
  );
  if (parts.some(({ price }) => price === undefined)) return { usage, atLeast, unknown: 'price' };
  return entries.some(({ isInvalid }) => isInvalid)
    ? { usage, atLeast, unknown: 'usage' }
    : { usage, total: atLeast, atLeast };
};

/** To a trillionth: 0.1 and 0.2 are 0.3. */
const rounded = (money: number): number => Number(money.toFixed(12));

/** Reads a list of prices: the parsed JSON of a file, not its text. Throws `config`, which names the mistake. */
export const readPriceList = (json: unknown, owner = 'readPriceList()'): PriceList => {
  if (isPriceList(owner, json)) return json;
  const what = typeof json === 'string' ? 'a string: parse it first' : 'this';
  throw misuse(`${owner} needs an object with 'currency', 'date' and 'prices', not ${what}.`);
};

const isPriceList = (owner: string, list: unknown): list is PriceList => {
  if (!isRecord(list)) return false;
  checkOptions(owner, list, rules, ['currency', 'date', 'prices']);
  if (!isRecord(list['prices'])) return false;
  checkPrices(owner, list['prices']);
  return true;
};

const rules: Readonly<Record<keyof PriceList, Rule>> = {
  currency: [
    (value) => typeof value === 'string' && /^[A-Z]{3}$/.test(value),
    "the three letters of a currency, such as 'USD'",
  ],
  date: [
    (value) =>
      typeof value === 'string' &&
      /^\d{4}-\d{2}-\d{2}$/.test(value) &&
      !Number.isNaN(Date.parse(value)),
    "the day of the prices, such as '2026-11-30'",
  ],
  prices: isObject,
};

/** The usage of one model by one agent. */
interface Entry {
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
const closeLedger = ({ info, local }: Where): void => void local(ledgers).delete(info.callId);

const entriesOf = (where: Where): readonly Entry[] => [...ledgerOf(where, where.info).all.values()];

/** Charges a call, and all calls above it. */
const charge = (where: Where, entry: Entry): void => {
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

const agentPath = ({ agent }: Pick<CallInfo, 'agent'>): string => agent.join('/');

/** The value of a tool step, with the usage of the sub-agents that it called: a replayed step does not call them again. */
const withUsageBelow = <T>(where: Where, stepId: string, value: T): T => {
  const { below } = ledgerOf(where, where.info);
  const entries = [...(below.get(stepId)?.values() ?? [])];
  below.delete(stepId);
  return entries.length === 0 || !isRecord(value) ? value : { ...value, usageBelow: entries };
};

/**
 * Charges the sub-agents of a replayed tool step, which has charged the agent that called it. Only what it has charged moves, so that the sum stays.
 * Without valid entries, nothing does.
 */
const chargeBelow = (where: Where, value: unknown): void => {
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

const hasUsage = ({ usage, isInvalid }: Entry): boolean =>
  isInvalid === true || tokensIn(usage) > 0;
