import { nearMatches } from 'millrace/values';
import type { Engine, Quantity } from './engine.js';
import { functionNames, resolveFunction } from './operations.js';

/** Resolves a name in an expression to a constant or a unit. Throws an error for any other name. */
export const resolveName = (engine: Engine, name: string): Quantity => {
  const { math } = engine;
  if (name === 'percent') return math.bignumber('0.01');
  const lower = name.toLowerCase();
  const constant = name.length > 1 ? lower : name;
  if (constants.has(constant)) return constantOf(engine, constant);
  const unit = [unitAliases.get(name), name, name.length > 2 ? lower : undefined].find(
    (it) => it !== undefined && math.Unit.isValuelessUnit(it),
  );
  if (unit !== undefined) return math.unit(unit);
  throw unknownName(engine, name);
};

const constants = new Set(['pi', 'e', 'tau', 'phi']);

const constantOf = ({ math }: Engine, constant: string): Quantity => {
  const value: unknown = Reflect.get(math, constant);
  return math.isBigNumber(value) ? value : math.bignumber(NaN);
};

/** Common spellings of units that mathjs does not know, or that are functions there. */
const unitAliases = new Map([
  ['min', 'minute'],
  ['sec', 'second'],
  ['coulomb', 'C'],
  ['chain', 'chains'],
  ['pound', 'lb'],
  ['pounds', 'lb'],
  ['kilo', 'kg'],
  ['kilos', 'kg'],
  ['KB', 'kB'],
  ['KM', 'km'],
  ['Km', 'km'],
  ['KG', 'kg'],
  ['Kg', 'kg'],
]);

const unknownName = ({ unitNames }: Engine, name: string): Error => {
  if (resolveFunction(name) !== undefined) {
    return new Error(`'${name}' is a function: write its argument in brackets, as in ${name}(2).`);
  }
  const near = nearMatches(name, [...unitNames, ...functionNames]);
  const hint = near.length > 0 ? ` Did you mean ${near.join(' or ')}?` : '';
  const rates = money.some((form) => form.test(name))
    ? ' Exchange rates of currencies are not available.'
    : '';
  return new Error(`'${name}' is not a known unit, constant or function.${hint}${rates}`);
};

const money = [/^\p{Sc}|^[A-Z]{3}$/u, /^(?:dollar|euro|yen|yuan|franc|rupee)s?$/iu];
