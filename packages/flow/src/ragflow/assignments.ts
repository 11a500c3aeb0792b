import type { Assignment } from '../document.js';
import { nameFrom, recordsIn, textIn, textsIn } from './canvas.js';
import { candidatesIn, variableNamed } from './references.js';
import { type Converted, type Conversion, handling, links } from './conversion.js';

const assignOperators: Readonly<Record<string, Assignment['operator']>> = {
  overwrite: 'set',
  set: 'set',
  clear: 'clear',
  append: 'append',
  extend: 'extend',
  remove_first: 'remove first',
  remove_last: 'remove last',
  '+=': 'add',
  '-=': 'subtract',
  '*=': 'multiply',
  '/=': 'divide',
};

export const convertAssigner = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const assign = recordsIn(it.params['variables']).flatMap((item): readonly Assignment[] => {
    const written = textIn(item['variable']);
    const variable = assignable(conversion, written);
    const word = textIn(item['operator']);
    const operator = Object.hasOwn(assignOperators, word) ? assignOperators[word] : undefined;
    if (variable === undefined || operator === undefined) {
      const why = variable === undefined ? `'${written}' cannot be set` : `'${word}' is not known`;
      note('variables', `${why}: this assignment is left out.`);
      return [];
    }
    const { parameter } = item;
    const isReference = ['overwrite', 'append', 'extend'].includes(word);
    const text = typeof parameter === 'string' ? parameter : undefined;
    const filled =
      text === undefined
        ? parameter
        : isReference
          ? refs.ref(text, 'variables')
          : refs.text(text, 'variables');
    const isAlone = ['clear', 'remove first', 'remove last'].includes(operator);
    return [{ variable, operator, ...(!isAlone && { value: filled }) }];
  });
  return asSet(conversion, assign);
};

const assignable = ({ canvas }: Conversion, written: string): string | undefined => {
  if (written.startsWith('env.')) {
    const name = written.slice('env.'.length);
    return canvas.variables.has(name) ? variableNamed(name) : undefined;
  }
  const [id = '', field = ''] = written.split('@');
  const component = canvas.components.get(id);
  return component?.kind === 'loop' ? nameFrom(component.id, field) : undefined;
};

/** A `set` component; without an assignment, it would be invalid, so it counts its runs. */
const asSet = (conversion: Conversion, assign: readonly Assignment[]): Converted => {
  const { id } = conversion.it;
  if (assign.length > 0) {
    return { component: { component_name: 'set', params: { assign }, ...links(conversion) } };
  }
  const runs = nameFrom(id, 'runs');
  return {
    component: {
      component_name: 'set',
      params: { assign: [{ variable: runs, operator: 'add', value: 1 }] },
      ...links(conversion),
    },
    variables: { [runs]: { type: 'number' } },
  };
};

export const convertAggregator = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const groups = recordsIn(it.params['groups']).map((group) => ({
    variable: nameFrom(it.id, textIn(group['group_name'])),
    value: candidatesIn(group)
      .map((candidate) => refs.ref(candidate, 'groups'))
      .join(''),
    count: candidatesIn(group).length,
  }));
  if (groups.some(({ count }) => count > 1)) {
    note(
      'groups',
      'The first value is taken there. Here, all values of branches that ran are joined as text.',
    );
  }
  const assign = groups.map(({ variable, value }) => ({ variable, value }));
  const declared = groups.map(({ variable }) => [variable, { type: 'string' }] as const);
  const { component, variables } = asSet(conversion, assign);
  return { component, variables: { ...variables, ...Object.fromEntries(declared) } };
};

export const convertTransform = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const { method, script, split_ref: text, delimiters } = it.params;
  if (method === 'merge') {
    if (/\{%|\|/u.test(textIn(script)))
      note('script', 'Jinja is not supported: only references are replaced.');
    const variable = nameFrom(it.id, 'result');
    const assign = [{ variable, value: refs.text(textIn(script), 'script') }];
    return { ...asSet(conversion, assign), variables: { [variable]: { type: 'string' } } };
  }
  const name = nameFrom(it.id);
  note('method', `Flows have no component that splits text: provide a function '${name}'.`);
  return {
    component: {
      component_name: 'code',
      params: {
        function: name,
        input: { text: refs.ref(textIn(text), 'split_ref'), delimiters: textsIn(delimiters) },
        ...handling(conversion),
      },
      ...links(conversion),
    },
  };
};
