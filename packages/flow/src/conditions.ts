import type { SwitchCase, SwitchCondition, SwitchOperator } from './document.js';
import { render, templateOf } from './render.js';
import type { Scope } from './scope.js';

/** Compiles the conditions of a switch or a loop. */
export const compileCase = ({
  conditions,
  logic = 'and',
}: Pick<SwitchCase, 'conditions' | 'logic'>): ((scope: Scope) => boolean) => {
  const all = conditions.map(compileCondition);
  return (scope) =>
    logic === 'and' ? all.every((holds) => holds(scope)) : all.some((holds) => holds(scope));
};

const compileCondition = ({
  value,
  operator,
  operand = '',
}: SwitchCondition): ((scope: Scope) => boolean) => {
  const [left, right] = [templateOf(value), templateOf(operand)];
  return (scope) =>
    compare(operator, normalize(render(left, scope)), normalize(render(right, scope)));
};

const normalize = (text: string): string => text.trim().toLowerCase();

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

/** NaN for a string that is not a number: every comparison with it is false. */
const numberIn = (text: string): number =>
  /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?$/u.test(text) ? Number(text) : NaN;
