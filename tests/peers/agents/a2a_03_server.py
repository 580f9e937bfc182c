"""An agent on the official SDK of A2A, 0.3, which knows no other revision."""

import asyncio

from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, Part, TextPart
from a2a.utils import new_agent_text_message, new_task

from agent import Orders, Watched, say, serve_uvicorn


class Told(AgentExecutor):
    def __init__(self, orders):
        self.orders = orders

    async def execute(self, context, event_queue):
        task = context.current_task or new_task(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        say(began={"id": task.id, "message": context.message.model_dump(mode="json", by_alias=True, exclude_none=True)})
        order, words = await self.orders.next()
        if order == "complete":
            await updater.add_artifact([Part(root=TextPart(text=words))])
            await updater.complete()
        else:
            await updater.failed(new_agent_text_message(words))

    async def cancel(self, context, event_queue):
        raise NotImplementedError


async def main():
    orders = Orders()
    card = AgentCard(
        name="told",
        description="Does what the test tells it.",
        version="1.0.0",
        url="http://127.0.0.1/",
        capabilities=AgentCapabilities(),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[],
    )
    handler = DefaultRequestHandler(agent_executor=Told(orders), task_store=InMemoryTaskStore())
    app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
    await serve_uvicorn(Watched(app, orders, lambda _scope, body: body["method"] == "message/send"))


asyncio.run(main())
