// Angular: a service whose signal streams an answer into the view. The agent runs in the browser.
import { inject, Injectable, InjectionToken, signal } from '@angular/core';
import { takeUntilDestroyed } from '@angular/core/rxjs-interop';
import { type Agent, createAgent, isMillraceError, text } from 'millrace';
import { openai } from '@millrace/openai';
import { catchError, type Observable, of, Subject, switchMap, tap } from 'rxjs';

/** Its requests go to /llm/v1/chat/completions of your server, which adds the key and forwards them. */
export const AGENT = new InjectionToken<Agent>('agent', {
  factory: () => {
    const baseURL = new URL('/llm/v1', location.origin).href;
    return createAgent({ name: 'helper', model: openai('gpt-5-mini', { baseURL }) });
  },
});

/** In a template: `{{ chat.answer() }}` and `<input #question (change)="chat.ask(question.value)" />`. */
@Injectable({ providedIn: 'root' })
export class ChatService {
  readonly answer = signal('');
  readonly ask = (question: string) => this.#question$.next(question);
  readonly #question$ = new Subject<string>();
  readonly #agent = inject(AGENT);

  constructor() {
    const answer$ = (question: string): Observable<string> =>
      this.#agent.stream$(question).pipe(text(), catchError(messageOf));
    this.#question$
      .pipe(
        tap(() => this.answer.set('')),
        switchMap(answer$), // the next question aborts the model request of the last one
        takeUntilDestroyed(), // so does the end of the service
      )
      .subscribe((delta) => this.answer.update((answer) => answer + delta));
  }
}

const messageOf = (error: unknown): Observable<string> =>
  of(isMillraceError(error) ? error.userMessage : 'Something went wrong.');
