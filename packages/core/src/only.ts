import { filter, type OperatorFunction } from 'rxjs';
import { type AgentEvent, type EventOf, type EventType, isEvent } from './events.js';

/** Lets the events of these types through, typed as such. */
export const only = <Type extends EventType>(
  ...types: readonly Type[]
): OperatorFunction<AgentEvent, EventOf<Type>> =>
  filter((event): event is EventOf<Type> => isEvent(event, ...types));
