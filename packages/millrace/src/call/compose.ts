import type { Layer } from '../seams/layer.js';
import { priorityOf } from '../seams/through.js';
import { preCallLayer } from './layers/pre-call.js';
import { conversationLayer } from './layers/conversation.js';
import { postCallLayer } from './layers/post-call.js';
import { hooksOf, layersFor } from '../seams/read-use.js';

/** The layers of a call, outermost first: its own and inherited ones. Of several `single` ones of a name, the inherited one stays, otherwise the last. */
export const layersOf = (own: readonly Layer[], inherited: readonly Layer[]): readonly Layer[] => {
  const all = new Set([...inherited, ...withoutReplaced(own)]);
  const isInherited = new Set(inherited);
  const isReplaced = ({ name, single }: Layer): boolean =>
    single === true && inherited.some((layer) => layer.single === true && layer.name === name);
  return [...all]
    .filter((layer) => isInherited.has(layer) || !isReplaced(layer))
    .sort((a, b) => priorityOf(a) - priorityOf(b));
};

const withoutReplaced = (layers: readonly Layer[]): readonly Layer[] =>
  layers.filter(
    ({ name, single }, index) =>
      single !== true ||
      !layers.slice(index + 1).some((later) => later.single === true && later.name === name),
  );

/** The layers that a sub-agent inherits. */
export const handedDown = (layers: readonly Layer[], speaks: boolean): readonly Layer[] =>
  layers.filter(({ inherit }) => inherit === true || (inherit === 'voice' && speaks));

export type Composition = ReturnType<typeof compose>;

/** Composes the layers of calls: once for all calls of an agent that have none of their own. */
export const compose = (use: readonly Layer[], inherited: readonly Layer[] = []) => {
  const interceptors = hooksOf(layersOf(use, inherited));
  // In any order: their places, `layerPlaces`, sort them.
  const native = [preCallLayer, ...layersFor(interceptors), conversationLayer, postCallLayer];
  return { use, layers: layersOf([...native, ...use], inherited), interceptors };
};
