"""An agent on the official SDK of A2A, 1.x."""

import asyncio

from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette

from agent import Orders, Watched, say, serve_uvicorn


class Told(AgentExecutor):
    def __init__(self, orders):
        self.orders = orders

    async def execute(self, context, event_queue):
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        say(began={"id": task.id, "message": MessageToDict(context.message)})
        order, words = await self.orders.next()
        message = new_text_message(words)
        if order == "complete":
            await updater.add_artifact([new_text_part(words)])
            await updater.complete()
        elif order == "fail":
            await updater.failed(message)
        elif order == "reject":
            await updater.reject(message)
        elif order == "ask":
            await updater.requires_input(message)
        elif order == "authorise":
            await updater.requires_auth(message)

    async def cancel(self, context, event_queue):
        raise NotImplementedError


async def main():
    orders = Orders()
    card = AgentCard(
        name="told",
        description="Does what the test tells it.",
        version="1.0.0",
        capabilities=AgentCapabilities(),
        supported_interfaces=[AgentInterface(protocol_binding="JSONRPC", url="http://127.0.0.1/", protocol_version="1.0")],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="told", name="told", description="Does what the test tells it.", tags=["test"])],
    )
    handler = DefaultRequestHandler(agent_executor=Told(orders), task_store=InMemoryTaskStore(), agent_card=card)
    app = Starlette(routes=create_jsonrpc_routes(handler, "/"))
    await serve_uvicorn(Watched(app, orders, lambda _scope, body: body["method"] == "SendMessage"))


asyncio.run(main())
