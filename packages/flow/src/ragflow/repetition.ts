import type {
  Assignment,
  FlowComponent,
  FlowComponents,
  FlowVariable,
  LoopParams,
  SwitchCondition,
} from '../document.js';
import { branchesOf, onErrorOf as handlerOf } from '../branches.js';
import { limits } from '../limits.js';
import { nameFrom, recordIn, recordsIn, textIn, textsIn } from './canvas.js';
import {
  type Converted,
  type Conversion,
  numberOf,
  within,
  links,
  onErrorOf,
  conditionFrom,
  asText,
  typeFrom,
  ofType,
} from './conversion.js';

export const convertIteration = (conversion: Conversion): Converted => {
  const { it, refs, note, inside, canvas } = conversion;
  const outputs = Object.values(recordIn(it.params['outputs']));
  const [output, ...others] = outputs.flatMap((given) => textsIn(recordIn(given)['ref']));
  if (others.length > 0) {
    note('outputs', `An iteration has one output: only '${output ?? ''}' is used.`);
  }
  const sends = [...canvas.components.values()].some(
    ({ parent, kind }) => parent === it.original && kind === 'message',
  );
  if (sends) {
    note('Message', 'Messages in an iteration are its output: they are not sent to the user.');
  }
  return {
    component: {
      component_name: 'iterate',
      params: {
        items: refs.ref(textIn(it.params['items_ref']) || 'sys.query', 'items_ref'),
        max_items: 1_000,
        components: withMessage(
          inside(),
          `${it.id}_out`,
          output === undefined ? undefined : refs.ref(output, 'outputs'),
        ),
        ...onErrorOf(conversion),
      },
      ...links(conversion),
    },
  };
};

/** A graph needs a message: its output. Without a given one, it is the output of the components at its end. */
export const withMessage = (
  components: FlowComponents,
  id: string,
  content: string | undefined,
): FlowComponents => {
  const all = Object.entries(components);
  const hasMessage = all.some(([, { component_name: name }]) => name === 'message');
  if (hasMessage && content === undefined) return components;
  const before = new Set(all.flatMap(([, component]) => nextOf(component)));
  const ends = all.filter(([, component]) => nextOf(component).length === 0).map(([name]) => name);
  const silent = new Set(['switch', 'set', 'begin']);
  const shown = ends.filter((name) => !silent.has(components[name]?.component_name ?? ''));
  const upstream = ends.length > 0 ? ends : [...before].slice(-1);
  return {
    ...components,
    [id.slice(0, 64)]: {
      component_name: 'message',
      params: { content: content ?? shown.map((name) => `{{${name}@output}}`).join('\n') },
      upstream,
    },
  };
};

export const nextOf = (component: FlowComponent): readonly string[] => [
  ...(branchesOf(component)?.flatMap(({ to }) => to) ?? component.downstream ?? []),
  ...(handlerOf(component)?.to ?? []),
];

export const exitName = (id: string): string => nameFrom(id, 'exit');

export const convertLoop = (conversion: Conversion): Converted => {
  const { it, note, inside, canvas, idsOf } = conversion;
  const { params, id } = it;
  const given = recordsIn(params['loop_variables']);
  const assign = assignmentsIn(conversion, given);
  const hasExit = [...canvas.components.values()].some(
    ({ parent, kind }) => parent === it.original && kind === 'exitloop',
  );
  const until = endOf(conversion, hasExit);
  const count = numberOf(params['maximum_loop_count']) ?? 0;
  if (count < 1 || count > limits.rounds) {
    note('maximum_loop_count', `A loop has from 1 to ${limits.rounds} rounds.`);
  }
  const component: FlowComponent = {
    component_name: 'loop',
    params: {
      max_rounds: within(count || limits.rounds, 1, limits.rounds),
      ...(until !== undefined && { until }),
      components: withMessage(inside(), `${id}_out`, undefined),
      ...onErrorOf(conversion),
    },
    ...links({ ...conversion, idsOf }),
  };
  return {
    component,
    ...(assign.length > 0 && { before: { component_name: 'set', params: { assign } } }),
    variables: {
      ...Object.fromEntries(given.map((item) => variableOf(id, item))),
      ...(hasExit && { [exitName(id)]: { type: 'boolean' } }),
    },
  };
};

type Item = Readonly<Record<string, unknown>>;

const variableOf = (id: string, item: Item): readonly [string, FlowVariable] => {
  const type = typeFrom(textIn(item['type']));
  const isConstant = item['input_mode'] === 'constant';
  const value = isConstant ? ofType(type, item['value']) : undefined;
  return [
    nameFrom(id, textIn(item['variable'])),
    { type, ...(value !== undefined && { default: value }) },
  ];
};

/** Those of the variables of a loop that begin with the value of another one. */
const assignmentsIn = (
  { it: { id }, refs }: Conversion,
  given: readonly Item[],
): readonly Assignment[] =>
  given
    .filter((item) => item['input_mode'] === 'variable')
    .map((item) => ({
      variable: nameFrom(id, textIn(item['variable'])),
      value: refs.ref(textIn(item['value']), 'loop_variables'),
    }));

/** When a loop ends, apart from its number of rounds. */
const endOf = (conversion: Conversion, hasExit: boolean): LoopParams['until'] => {
  const { it, refs, note } = conversion;
  const place = 'loop_termination_condition';
  const conditions = recordsIn(it.params[place]).map((item) => {
    const isReference = item['input_mode'] === 'variable';
    const right = isReference
      ? refs.ref(textIn(item['value']), place)
      : refs.text(asText(item['value']), place);
    return conditionFrom(conversion, textIn(item['variable']), item['operator'], right, place);
  });
  const isAny = it.params['logical_operator'] === 'or';
  if (hasExit && conditions.length > 1 && !isAny) {
    note(place, 'With an ExitLoop, one of its conditions is enough.');
  }
  const exit: SwitchCondition = {
    value: `{{var.${exitName(it.id)}}}`,
    operator: 'equals',
    operand: 'true',
  };
  const all = hasExit ? [...conditions, exit] : conditions;
  if (all.length === 0) return undefined;
  const isOr = (isAny || hasExit) && all.length > 1;
  return { conditions: all, ...(isOr && { logic: 'or' }) };
};

export const convertExit = (conversion: Conversion): Converted => {
  const { it, canvas } = conversion;
  const loop = canvas.components.get(it.parent ?? '')?.id ?? it.id;
  const assign = [{ variable: exitName(loop), value: true }];
  return { component: { component_name: 'set', params: { assign }, ...links(conversion) } };
};
