import type { AgentEvent } from 'millrace';
import { checkOptions, isFunction } from 'millrace/values';
import {
  concat,
  defer,
  distinctUntilChanged,
  EMPTY,
  exhaustMap,
  filter,
  from,
  ignoreElements,
  map,
  type Observable,
  type ObservableInput,
  of,
  type OperatorFunction,
  tap,
} from 'rxjs';
import { initialVariables } from './components/set.js';
import { type FlowState, flowStateName, isFlowState } from './flow-state.js';
import { checkedDocument } from './problems-in.js';
import { allComponents } from './template-problems.js';
import { createPicture } from './to-mermaid.js';

/**
 * Emits the state of a flow at the start of its call, and after each change. The source may be the events of a larger
 * call, such as a team with the flow as a member. Completes with the source. Throws a `config` error for an invalid
 * document.
 */
export const flowStates = (document: unknown): OperatorFunction<AgentEvent, FlowState> => {
  const { name, components, variables = {} } = checkedDocument(document);
  const initial: FlowState = {
    components: Object.fromEntries(allComponents(components).map(({ id }) => [id, 'pending'])),
    variables: Object.fromEntries(
      [...initialVariables(variables)].map(([key, { value }]) => [key, value]),
    ),
  };
  return (event$) =>
    event$.pipe(
      filter(({ agent }) => agent.at(-1) === name),
      map((event) => {
        if (event.type === 'preCall') return initial;
        const isState = event.type === 'stateChanged' && event.name === flowStateName;
        return isState && isFlowState(event.state) ? event.state : undefined;
      }),
      filter((state) => state !== undefined),
    );
};

/** Options of `livePicture`. */
export interface LivePictureOptions {
  /** Draws a picture. Pictures that change meanwhile are left out, except the last one. Default: does nothing. */
  // A verb, which may also return a Promise.
  // eslint-disable-next-line rxjs-x/finnish
  readonly draw?: ((picture: string) => ObservableInput<unknown>) | undefined;
}

/**
 * Renders a flow as Mermaid text while it runs: components have the colour of their status. Emits a picture at the
 * start of the call, and after each change that shows; with `draw`, after it is drawn. A slow `draw` gets fewer pictures,
 * never old ones, and the last one always. Completes with the source, when all is drawn. Errors with the source or
 * `draw`. Throws a `config` error for an invalid document.
 *
 * @example
 * agent.stream$('How do mills work?').pipe(livePicture(document)).subscribe((picture) => show(picture));
 */
export const livePicture = (
  document: unknown,
  options: LivePictureOptions = {},
): OperatorFunction<AgentEvent, string> => {
  checkOptions('livePicture()', options, { draw: isFunction });
  const { draw = () => EMPTY } = options;
  const picture = createPicture(document);
  const states = flowStates(document);
  return (event$) =>
    event$.pipe(
      states,
      distinctUntilChanged((one, other) => one.components === other.components),
      map((state) => () => picture(state)),
      drawLatest(draw),
    );
};

/** Renders and draws one value at a time: the newest when the last one is drawn. */
const drawLatest =
  <T>(draw: (drawn: T) => ObservableInput<unknown>): OperatorFunction<() => T, T> =>
  (source) =>
    defer(() => {
      let newest: (() => T) | undefined;
      const next$: Observable<T> = defer(() => {
        if (newest === undefined) return EMPTY;
        const drawn = newest();
        newest = undefined;
        return concat(from(draw(drawn)).pipe(ignoreElements()), of(drawn), next$);
      });
      return source.pipe(
        tap((render) => {
          newest = render;
        }),
        exhaustMap(() => next$),
      );
    });
