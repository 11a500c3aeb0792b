import type { FlowComponent, FlowComponents, OnError } from './document.js';

/** Ways out of a component by what it decides. */
export interface Way {
  /** What a picture calls it. */
  readonly label: string;
  readonly to: readonly string[];
  /** Where the document says it, from the params on. */
  readonly path: readonly (string | number)[];
}

/** The ways of a component that chooses; none where it does not. One of them is gone, never two. */
export const choicesOf = (component: FlowComponent): readonly Way[] | undefined => {
  switch (component.component_name) {
    case 'switch': {
      const { cases, otherwise } = component.params;
      return [
        ...cases.map(({ conditions, logic = 'and', to }, index) => ({
          label: conditions
            .map(({ value, operator, operand = '' }) => `${value} ${operator} ${operand}`.trim())
            .join(` ${logic} `),
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

const otherwiseOf = (to: readonly string[] | undefined): readonly Way[] =>
  to === undefined ? [] : [{ label: 'otherwise', to, path: ['otherwise'] }];

/** What a component does where it fails. */
export const onErrorOf = ({ params }: FlowComponent): OnError | undefined =>
  params !== undefined && 'on_error' in params ? params.on_error : undefined;

/** The components within a component. */
export const innerOf = (component: FlowComponent): FlowComponents | undefined =>
  component.component_name === 'iterate' ? component.params.components : undefined;
