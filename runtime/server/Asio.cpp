//===- Asio.cpp - Asio and Beast, what of them is no template -------------===//
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
