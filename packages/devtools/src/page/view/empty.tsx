// Pages without a call.

export const EmptyState = ({ source }: { readonly source: 'agents' | 'store' | 'file' }) => (
  <div class="welcome">
    <h2>{source === 'store' ? 'The store has no calls' : 'Waiting for the first call'}</h2>
    {source === 'store' ? (
      <p>Calls appear here as soon as an agent with a journal records them in this store.</p>
    ) : (
      <>
        <p>
          Call an agent that the devtools inspect. Its run appears here as it happens: each
          subscription is a line, each value a marble, and the conversation is beside them.
        </p>
        <p>
          Without <code>keepOpen: true</code>, calls are recorded only while a page is open.
        </p>
      </>
    )}
    <p>
      Press <kbd>?</kbd> for the keys.
    </p>
  </div>
);

export const Refused = () => (
  <main class="welcome refused">
    <h1>The address has no valid token</h1>
    <p>
      The devtools answer only to the address that your program printed when it started. Copy that
      address, with everything after <code>#token=</code>, and open it here. A program that was
      started again has a new token.
    </p>
  </main>
);
