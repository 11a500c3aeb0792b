// NestJS: `@Sse()` takes an Observable, and unsubscribes when the client disconnects, which aborts the model request.
import { Controller, type MessageEvent, Module, Query, Sse } from '@nestjs/common';
import { createAgent, text } from 'millrace';
import { openai } from '@millrace/openai';
import { map, type Observable } from 'rxjs';

const agent = createAgent({ name: 'helper', model: openai('gpt-5-mini') });

@Controller('chat')
export class ChatController {
  /** `new EventSource('/chat?question=…')` gets each piece of the answer. */
  @Sse()
  answer$(@Query('question') question: string): Observable<MessageEvent> {
    return agent.stream$(question).pipe(
      text(),
      map((delta) => ({ data: { delta } })),
    );
  }
}

@Module({ controllers: [ChatController] })
export class ChatModule {}
