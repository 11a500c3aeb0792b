import type { FlowComponent, FlowComponents, OnError, SwitchCase } from './document.js';

/** One choice of a switch or categorize component. */
export interface Branch {
  readonly label: string;
  readonly to: readonly string[];
  readonly path: readonly (string | number)[];
}

/** The branches of a component that chooses exactly one; `undefined` for other components. */
export const branchesOf = (component: FlowComponent): readonly Branch[] | undefined => {
  switch (component.component_name) {
    case 'switch': {
      const { cases, otherwise } = component.params;
      return [
        ...cases.map(({ to, ...condition }, index) => ({
          label: conditionText(condition),
          to,
          path: ['cases', index, 'to'],
        })),
        ...otherwiseOf(otherwise),
      ];
    }
    case 'categorize': {
      const { categories, otherwise } = component.params;
      return [
        ...Object.entries(categories).map(([name, { to }]) => ({
          label: name,
          to,
          path: ['categories', name, 'to'],
        })),
        ...otherwiseOf(otherwise),
      ];
    }
    default:
      return undefined;
  }
};

export const conditionText = ({
  conditions,
  logic = 'and',
}: Pick<SwitchCase, 'conditions' | 'logic'>): string =>
  conditions
    .map(({ value, operator, operand = '' }) => `${value} ${operator} ${operand}`.trim())
    .join(` ${logic} `);

const otherwiseOf = (to: readonly string[] | undefined): readonly Branch[] =>
  to === undefined ? [] : [{ label: 'otherwise', to, path: ['otherwise'] }];

export const onErrorOf = ({ params }: FlowComponent): OnError | undefined =>
  params !== undefined && 'on_error' in params ? params.on_error : undefined;

/** The components inside an iteration or a loop. */
export const innerOf = (component: FlowComponent): FlowComponents | undefined =>
  component.component_name === 'iterate' || component.component_name === 'loop'
    ? component.params.components
    : undefined;
