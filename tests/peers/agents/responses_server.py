"""An agent on Microsoft's server of the Responses protocol, which is OpenAI's: in the background, and asked for."""

import asyncio

from azure.ai.agentserver.responses import InMemoryResponseProvider, ResponseEventStream, ResponsesAgentServerHost
from hypercorn.asyncio import serve
from hypercorn.config import Config

from agent import Orders, Watched, listening, say


async def main():
    orders = Orders()
    app = ResponsesAgentServerHost(store=InMemoryResponseProvider(), configure_observability=None, log_level="CRITICAL")

    @app.response_handler
    async def told(request, context, cancelled):
        stream = ResponseEventStream(response_id=context.response_id, request=request)
        yield stream.emit_created()
        yield stream.emit_in_progress()
        say(began={"id": context.response_id, "input": await context.get_input_text()})
        order, words = await orders.next()
        if order == "complete":
            for event in stream.output_item_message(words):
                yield event
            yield stream.emit_completed()
        else:
            yield stream.emit_failed(message=words)

    listener, url = listening()
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.errorlog = None
    say(url=url)
    await serve(Watched(app, orders, lambda scope, _body: scope["method"] == "POST"), config)


asyncio.run(main())
