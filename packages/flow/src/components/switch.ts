import { of } from 'rxjs';
import type { SwitchCase, SwitchCondition, SwitchOperator, SwitchParams } from '../document.js';
import { render, templateOf } from '../render.js';
import { noOutput, type Scope } from '../scope.js';
import type { Work } from '../work.js';

/** Leads on by the first case that holds. */
export const switchWork = ({ cases, otherwise = [] }: SwitchParams): Work => {
  const readied = cases.map(casesHolds);
  return (scope) => {
    const found = readied.find(({ holds }) => holds(scope));
    return of({ status: 'done', output: noOutput, to: found?.to ?? otherwise });
  };
};

interface Readied {
  readonly to: readonly string[];
  readonly holds: (scope: Scope) => boolean;
}

const casesHolds = ({ conditions, logic = 'and', to }: SwitchCase): Readied => {
  const all = conditions.map(conditionHolds);
  return {
    to,
    holds: (scope) =>
      logic === 'and' ? all.every((holds) => holds(scope)) : all.some((holds) => holds(scope)),
  };
};

const conditionHolds = ({
  value,
  operator,
  operand = '',
}: SwitchCondition): ((scope: Scope) => boolean) => {
  const [left, right] = [templateOf(value), templateOf(operand)];
  return (scope) => compare(operator, plain(render(left, scope)), plain(render(right, scope)));
};

const plain = (text: string): string => text.trim().toLowerCase();

const compare = (operator: SwitchOperator, left: string, right: string): boolean => {
  switch (operator) {
    case 'contains':
      return left.includes(right);
    case 'not contains':
      return !left.includes(right);
    case 'equals':
      return left === right;
    case 'not equals':
      return left !== right;
    case 'starts with':
      return left.startsWith(right);
    case 'ends with':
      return left.endsWith(right);
    case 'is empty':
      return left === '';
    case 'is not empty':
      return left !== '';
    case '>':
      return numberIn(left) > numberIn(right);
    case '<':
      return numberIn(left) < numberIn(right);
    case '≥':
    case '>=':
      return numberIn(left) >= numberIn(right);
    case '≤':
    case '<=':
      return numberIn(left) <= numberIn(right);
  }
};

/** Not a number where the text is none: then no comparison holds. */
const numberIn = (text: string): number =>
  /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?$/u.test(text) ? Number(text) : NaN;
