import type { Reply } from 'millrace';
import type { Cost } from 'millrace/traffic';

/** The cost of a call as a client reads it: without the names of models and agents. */
export type ShownCost = Pick<Cost, 'currency' | 'total' | 'atLeast'>;

/** The field for the metadata of a reply; empty without the layer `cost`. */
export const shownCost = ({ cost }: Reply): { readonly cost?: ShownCost } => {
  if (cost === undefined) return {};
  const { currency, total, atLeast } = cost;
  return { cost: { currency, atLeast, ...(total !== undefined && { total }) } };
};
