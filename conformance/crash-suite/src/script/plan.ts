import { seeded } from '../seeded.js';

/** The tools of the script: `book` may be asked twice, `refund` needs an approval, `wait` waits for the server, `sign` suspends the call, `clerk` is an agent with tools of its own. */
export type ToolName = 'book' | 'pay' | 'refund' | 'wait' | 'sign' | 'clerk';

/** One use of a tool that the model asks for. What it is about names it in the whole call, those below included. */
export interface PlannedUse {
  readonly tool: ToolName;
  readonly item: string;
}

/** What the model asks for in each of its turns; behind the last it answers. */
export type Plan = readonly (readonly PlannedUse[])[];

/** Makes the plan of a seed: three batches of two to four tools, a clerk in the second, a refund in the third. */
export const planOf = (seed: number): Plan => {
  const random = seeded(seed);
  return ([undefined, 'clerk', 'refund'] as const).map((special, turn) => {
    const plain = Array.from({ length: 2 + random.below(2) }, (_, index): ToolName =>
      index === 0 ? 'pay' : random.below(2) === 0 ? 'pay' : 'book',
    );
    const at = random.below(plain.length + 1);
    const tools = special === undefined ? plain : plain.toSpliced(at, 0, special);
    return tools.map((tool, index) => ({ tool, item: `${turn + 1}.${index}` }));
  });
};

/** The plan of a seed, with a second batch that suspends the call. */
export const signedPlanOf = (seed: number): Plan =>
  planOf(seed).map((batch, turn) =>
    turn === 1 ? [...batch, { tool: 'sign', item: `2.${batch.length}` }] : batch,
  );

/** A plan that waits for the server, and does nothing else. */
export const waitPlan: Plan = [[{ tool: 'wait', item: '1.0' }]];

/** What a clerk does who is asked about an item. */
export const clerkPlanOf = (item: string): Plan => [
  [
    { tool: 'pay', item: `${item}.a` },
    { tool: 'book', item: `${item}.b` },
  ],
];

/** The effects of a plan, those of its clerks included: each with the item that it falls away with, which is that of the outermost use. */
export const effectsOf = (plan: Plan): readonly (PlannedUse & { readonly outermost: string })[] =>
  plan.flat().flatMap((use) =>
    use.tool === 'clerk'
      ? clerkPlanOf(use.item)
          .flat()
          .map((below) => ({ ...below, outermost: use.item }))
      : [{ ...use, outermost: use.item }],
  );
