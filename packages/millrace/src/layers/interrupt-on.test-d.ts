import { fromEvent, map, type Observable, of, Subject, timer } from 'rxjs';
import {
  type AgentEvent,
  createAgent,
  interruptOn,
  type Message,
  type Model,
  only,
  replies,
  type UserMessage,
} from '../index.js';
import { sessions } from './sessions/index.js';

declare const model: Model;
declare const signal: AbortSignal;
declare const message: Message;
declare const question$: Observable<UserMessage>;
declare const anything: unknown;
const agent = createAgent({ model });

// A text of the reply.
interruptOn(of('Stopped by you.'));
interruptOn(of({ message: 'Stopped by you.' }));
interruptOn(of({ kind: 'interrupt', message: 'Stopped by you.' }));
interruptOn(of(message));
interruptOn(of({ message }));
interruptOn(question$);
interruptOn(agent.stream$('?').pipe(replies()));

// No text.
interruptOn(of(anything));
interruptOn(timer(9_000));
interruptOn(new Subject<void>());
interruptOn(of(undefined, null, true, {}));
interruptOn(fromEvent(signal, 'abort').pipe(map(() => 'Aborted.')));
declare const click$: Observable<Pick<Event, 'type' | 'timeStamp' | 'target'>>;
interruptOn(click$);
interruptOn(agent.stream$('?').pipe(only('postActing')));
declare const event$: Observable<AgentEvent>;
interruptOn(event$);

// @ts-expect-error the text has another name
interruptOn(of({ text: 'Stop.' }));
// @ts-expect-error the text is no string
interruptOn(of({ message: 5 }));
// @ts-expect-error the message of an error is not for users
interruptOn(of(new Error('ECONNREFUSED')));
// @ts-expect-error a list is no message
interruptOn(of(['Stop.']));
// @ts-expect-error a Promise is not awaited
interruptOn(of(Promise.resolve('Stop.')));

const session = sessions(agent).open('s');
session.interrupt();
session.interrupt('Stopped by you.', 'c');
// @ts-expect-error a string is the text
session.interrupt({ message: 'Stopped by you.' });
// @ts-expect-error an id is a string
session.interrupt(undefined, 5);
