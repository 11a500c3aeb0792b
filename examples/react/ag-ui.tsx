// A chat with the client of AG-UI and a hook: text, tools, and interrupts that are answered with a resume.
import { buildResumeArray, HttpAgent, type RunAgentInput } from '@ag-ui/client';
import { useEffect, useReducer, useState } from 'react';
import { createRoot } from 'react-dom/client';

/** Its `connectAgent` loads the messages of a thread, and the rest of its running answer. */
class ChatAgent extends HttpAgent {
  protected override connect(input: RunAgentInput) {
    return new HttpAgent({ url: `${this.url}/connect` }).run(input);
  }
}

/** The agent, rendered at each change. */
const useAgent = (url: string, threadId: string) => {
  const [agent] = useState(() => new ChatAgent({ url, threadId }));
  const [error, setError] = useState<string>();
  const [, render] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const { unsubscribe } = agent.subscribe({
      onRunStartedEvent: () => setError(undefined),
      onMessagesChanged: render,
      onRunErrorEvent: ({ event }) => setError(event.message),
      onRunFailed: (failed) => setError(failed.error.message),
      onRunFinalized: render,
    });
    agent.connectAgent().finally(render).catch(ignore);
    return unsubscribe;
  }, [agent]);
  const run = (parameters?: Parameters<ChatAgent['runAgent']>[0]) => {
    agent.runAgent(parameters).finally(render).catch(ignore);
    render();
  };
  return { agent, run, error };
};

/** `onRunFailed` shows it. */
const ignore = () => undefined;

const Chat = ({ threadId }: { readonly threadId: string }) => {
  const { agent, run, error } = useAgent('/api/ag-ui', threadId);
  const [text, setText] = useState('');
  const { messages, pendingInterrupts, isRunning } = agent;
  const ask = () => {
    agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: text });
    run();
    setText('');
  };
  const decide = (approved: boolean) => {
    const response = { status: 'resolved', payload: approved } as const;
    const responses = Object.fromEntries(pendingInterrupts.map(({ id }) => [id, response]));
    run({ resume: buildResumeArray(pendingInterrupts, responses) });
  };
  return (
    <main>
      <div className="messages">
        {messages.map((message) => (
          <article key={message.id} className={message.role}>
            {typeof message.content === 'string' && <p>{message.content}</p>}
            {message.role === 'assistant' &&
              message.toolCalls?.map(({ id, function: tool }) => (
                <section key={id} aria-label={tool.name}>
                  {tool.name} {tool.arguments}
                </section>
              ))}
          </article>
        ))}
      </div>
      {!isRunning && pendingInterrupts.length > 0 && (
        <section aria-label="Approval">
          {pendingInterrupts.map(({ id, message }) => (
            <p key={id}>{message}</p>
          ))}
          <button onClick={() => decide(true)}>Approve</button>
          <button onClick={() => decide(false)}>Deny</button>
        </section>
      )}
      {error && <p role="alert">{error}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          ask();
        }}
      >
        <input id="message" value={text} onChange={(event) => setText(event.target.value)} />
        <button disabled={isRunning || pendingInterrupts.length > 0}>Send</button>
      </form>
    </main>
  );
};

const page = document.getElementById('page');
if (page) createRoot(page).render(<Chat threadId="chat-1" />);
